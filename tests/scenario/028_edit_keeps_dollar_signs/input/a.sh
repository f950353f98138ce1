echo price
