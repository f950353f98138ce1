package main

func area(w, h int) int {
	product := w * h
	return product
}

func volume(w, h, d int) int {
	product := w * h * d
	return product
}
