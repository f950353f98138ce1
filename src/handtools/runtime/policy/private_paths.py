"""Table of private paths: files with secrets, such as keys, passwords, tokens; and names of their backup copies.

Each row has a glob and what the file holds. A glob covers files, links and all below it. Where ordinary projects
use the same folder name (`.docker`, `.cargo`, `.config`), only the file in it is listed. ADR 126.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

KEY_FILES = {
    "*.pem": "a private key, often",
    "*.key": "a private key",
    "*.p8": "a private key",
    "*.p12": "a private key with its certificate",
    "*.pfx": "a private key with its certificate",
    "*.ppk": "PuTTY's private keys",
    "*.jks": "Java's private keys",
    "*.keystore": "Java's private keys",
    "*.kdbx": "KeePass's passwords",
    "*.keychain-db": "macOS's passwords",
    "id_rsa*": "a private key for SSH",
    "id_dsa*": "a private key for SSH",
    "id_ecdsa*": "a private key for SSH",
    "id_ed25519*": "a private key for SSH",
    ".ssh": "private keys for SSH",
    ".gnupg": "private keys of GnuPG",
    ".password-store": "pass's passwords",
}
PASSWORD_FILES = {
    ".env": "secrets of the program",
    ".env.*": "secrets of the program",
    ".htpasswd": "a web server's passwords",
    ".netrc": "passwords for hosts",
    ".authinfo": "passwords for hosts",
    ".pgpass": "PostgreSQL's passwords",
    ".my.cnf": "MySQL's passwords",
    ".mylogin.cnf": "MySQL's passwords",
    ".git-credentials": "git's passwords",
    ".npmrc": "npm's token, often",
    ".pypirc": "passwords for package indexes",
    "**/.cargo/credentials": "cargo's token",
    "**/.cargo/credentials.toml": "cargo's token",
    "**/.gem/credentials": "RubyGems' token",
    "**/.composer/auth.json": "Composer's passwords",
    "**/.config/composer/auth.json": "Composer's passwords",
    "**/.m2/settings-security.xml": "Maven's master password",
    "**/.gradle/gradle.properties": "the user's passwords for repositories, and for signing",
    "**/.subversion/auth": "Subversion's passwords",
    "**/.config/gh/hosts.yml": "GitHub's token",
    "**/.config/glab-cli/config.yml": "GitLab's token",
    "**/.config/hub": "GitHub's token",
    "**/.local/share/keyrings": "the desktop's passwords",
    "**/.huggingface/token": "Hugging Face's token",
    "**/.cache/huggingface/token": "Hugging Face's token",
    "**/.kaggle/kaggle.json": "Kaggle's token",
}
CLOUD_CREDENTIAL_FILES = {
    ".aws": "keys of AWS",
    ".oci": "keys of Oracle's cloud",
    ".kube": "keys of clusters",
    ".s3cfg": "keys of storage",
    ".boto": "keys of storage",
    "rclone.conf": "keys of storage",
    ".vault-token": "Vault's token",
    ".dockercfg": "passwords for registries",
    "**/.docker/config.json": "passwords for registries",
    "**/.config/containers/auth.json": "passwords for registries",
    "**/.config/helm/registry": "passwords for registries",
    "**/.config/gcloud": "keys of Google's cloud",
    "application_default_credentials.json": "keys of Google's cloud",
    "**/.config/doctl/config.yaml": "DigitalOcean's token",
    "**/.azure/accessTokens.json": "keys of Azure",
    "**/.azure/msal_token_cache.bin": "keys of Azure",
    "**/.azure/msal_token_cache.json": "keys of Azure",
    "**/.azure/service_principal_entries.bin": "keys of Azure",
    "**/.azure/service_principal_entries.json": "keys of Azure",
    "*.tfstate": "Terraform's state, which holds the secrets of what it made",
    "credentials.tfrc.json": "Terraform's token",
    ".databrickscfg": "Databricks' token",
    "**/.snowflake/connections.toml": "Snowflake's passwords",
    "**/.snowsql/config": "Snowflake's passwords",
}
AGENT_TOKEN_FILES = {
    "**/.claude/.credentials.json": "Claude Code's token",
    "**/.codex/auth.json": "Codex's token",
    "**/.gemini/oauth_creds.json": "Gemini CLI's token",
    "**/.local/share/opencode/auth.json": "opencode's tokens",
}
PRIVATE_PATHS: dict[str, str] = dict(
    chain.from_iterable(
        each.items() for each in (KEY_FILES, PASSWORD_FILES, CLOUD_CREDENTIAL_FILES, AGENT_TOKEN_FILES)
    )
)
PUBLIC_EXAMPLE_FILES = ("*.pub", ".env.example", ".env.sample", ".env.template", ".env.dist")
"""Globs of example and public files that are exempt."""

_COPIES = (
    "{}~",
    "#{}#",
    ".#{}",
    "{}.bak",
    "{}.backup",
    "{}.old",
    "{}.orig",
    "{}.save",
    "{}.swp",
    "{}.swo",
    ".{}.swp",
    ".{}.swo",
)
"""Name patterns of backup copies that Emacs, nano, vim and people make."""


def with_backup_copy_globs(globs: Iterable[str]) -> tuple[str, ...]:
    """Return the globs, each followed by globs of its backup copies."""
    return tuple(dict.fromkeys(chain.from_iterable((glob, *_copies(glob)) for glob in globs)))


def _copies(glob: str) -> Iterator[str]:
    folder, slash, name = glob.rpartition("/")
    for form in _COPIES:
        copy = form.format(name)
        # A star is for whatever is put before or behind a name.
        copy = "*" + copy.partition("*")[2] if name.startswith("*") else copy
        copy = copy.rpartition("*")[0] + "*" if name.endswith("*") else copy
        yield f"{folder}{slash}{copy}"
