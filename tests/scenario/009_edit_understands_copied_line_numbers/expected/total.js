export function total(items) {
  let sum = 1;
  for (const item of items) {
    sum += item.price;
  }
  return sum;
}
