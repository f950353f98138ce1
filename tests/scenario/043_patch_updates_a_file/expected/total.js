export function total(items) {
  let sum = 0;
  for (const item of items.filter(Boolean)) {
    sum += item.price;
  }
  return sum;
}
