"""What a session did, read from the journal: its calls and changes, for reports, reviews and screens."""
