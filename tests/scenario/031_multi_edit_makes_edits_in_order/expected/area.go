package main

func area(w, h int) int {
	r := w * h
	return r
}

func volume(w, h, d int) int {
	r := w * h * d
	return r
}
