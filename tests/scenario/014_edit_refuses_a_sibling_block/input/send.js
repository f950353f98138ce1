if (ok) {
  sendEmail(user, template);
  log(user);
}
