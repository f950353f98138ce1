package main

func area(w, h int) int {
	result := w * h
	return result
}

func volume(w, h, d int) int {
	result := w * h * d
	return result
}
