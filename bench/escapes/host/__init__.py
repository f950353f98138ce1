"""Attacks on the host side: on what our own process runs, reads and believes on behalf of calls.

Each prepares a workspace as an attacker could, then makes ordinary calls through a real toolbox with the default
policy, where nobody says yes. Whether it succeeded is judged from outside: code ran outside the sandbox, a secret
was shown, something protected changed without a question, our process took too much, failed or no longer works,
something else ran than what was approved, or another token's things were seen.
"""
