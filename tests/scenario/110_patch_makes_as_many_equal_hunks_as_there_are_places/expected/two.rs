fn first() {
    count(1);
    sweep();
}

fn second() {
    count(2);
    sweep(all);
}
