"""For authors of tools and hosts: fakes and contract suites."""
