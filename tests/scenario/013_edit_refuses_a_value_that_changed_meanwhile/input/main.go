func main() {
	x := 1
	y := 99
	z := 3
}
