fn first() {
    count(1);
    tidy();
}

fn second() {
    count(2);
    tidy();
}
fn third() {
    count(1);
    tidy();
}

fn fourth() {
    count(2);
    tidy();
}
