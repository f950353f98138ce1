export function total(items) {
  let runningTotal = 0;
  for (const item of items) {
    sum += item.price;
  }
  return sum;
}
