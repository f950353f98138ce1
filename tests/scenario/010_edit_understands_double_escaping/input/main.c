#include <stdio.h>

int main(void) {
    printf("one");
    printf("two");
}
