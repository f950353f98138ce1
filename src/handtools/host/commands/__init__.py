"""Running commands on this machine: launching, confining, capturing, ending."""
