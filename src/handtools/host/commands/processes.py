"""Processes: started by a supervisor, collected within bounds, ended with all they started."""
