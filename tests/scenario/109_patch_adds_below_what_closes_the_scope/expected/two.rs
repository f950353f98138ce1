fn first() {
    count(1);
    tidy();
}

fn between() {}

fn second() {
    count(2);
    tidy();
}
