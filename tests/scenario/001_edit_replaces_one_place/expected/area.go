package main

func area(w, h int) int {
	result := h * w
	return result
}

func volume(w, h, d int) int {
	result := w * h * d
	return result
}
