"""The calls and changes of a session, read from the journal for reports, reviews and live views."""
