fn first() {
    count(1);
    tidy();
}

fn second() {
    count(2);
    tidy();
}
