"""For authors of tools and hosts: contract suites, and a toolbox in memory with stubs. Start with `contract`."""
