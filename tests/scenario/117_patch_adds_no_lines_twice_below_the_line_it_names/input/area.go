package main

// Shapes and their sizes.

func main() {}
