"""Table of private paths, which contain secrets such as keys, passwords or tokens; and names of backup copies.

Each row has a glob and what such a file contains. A glob covers files, symlinks and all paths below a match. If
ordinary projects use the same folder name (`.docker`, `.cargo`, `.config`), only the file in it is listed.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

KEY_FILES = {
    "*.pem": "often a private key",
    "*.key": "a private key",
    "*.p8": "a private key",
    "*.p12": "a private key with its certificate",
    "*.pfx": "a private key with its certificate",
    "*.ppk": "PuTTY private keys",
    "*.jks": "Java private keys",
    "*.keystore": "Java private keys",
    "*.kdbx": "KeePass passwords",
    "*.keychain-db": "macOS passwords",
    "id_rsa*": "an SSH private key",
    "id_dsa*": "an SSH private key",
    "id_ecdsa*": "an SSH private key",
    "id_ed25519*": "an SSH private key",
    ".ssh": "SSH private keys",
    ".gnupg": "GnuPG private keys",
    ".password-store": "passwords of `pass`",
}
PASSWORD_FILES = {
    ".env": "the program's secrets",
    ".env.*": "the program's secrets",
    ".htpasswd": "a web server's passwords",
    ".netrc": "passwords for hosts",
    ".authinfo": "passwords for hosts",
    ".pgpass": "PostgreSQL's passwords",
    ".my.cnf": "MySQL's passwords",
    ".mylogin.cnf": "MySQL's passwords",
    ".git-credentials": "git's passwords",
    ".npmrc": "often an npm token",
    ".pypirc": "passwords for package indexes",
    "**/.cargo/credentials": "cargo's token",
    "**/.cargo/credentials.toml": "cargo's token",
    "**/.gem/credentials": "RubyGems' token",
    "**/.composer/auth.json": "Composer's passwords",
    "**/.config/composer/auth.json": "Composer's passwords",
    "**/.m2/settings-security.xml": "Maven's master password",
    "**/.gradle/gradle.properties": "the user's passwords for repositories and signing",
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
    ".aws": "AWS credentials",
    ".oci": "Oracle Cloud credentials",
    ".kube": "Kubernetes credentials",
    ".s3cfg": "storage credentials",
    ".boto": "storage credentials",
    "rclone.conf": "storage credentials",
    ".vault-token": "Vault's token",
    ".dockercfg": "passwords for registries",
    "**/.docker/config.json": "passwords for registries",
    "**/.config/containers/auth.json": "passwords for registries",
    "**/.config/helm/registry": "passwords for registries",
    "**/.config/gcloud": "Google Cloud credentials",
    "application_default_credentials.json": "Google Cloud credentials",
    "**/.config/doctl/config.yaml": "DigitalOcean's token",
    "**/.azure/accessTokens.json": "Azure credentials",
    "**/.azure/msal_token_cache.bin": "Azure credentials",
    "**/.azure/msal_token_cache.json": "Azure credentials",
    "**/.azure/service_principal_entries.bin": "Azure credentials",
    "**/.azure/service_principal_entries.json": "Azure credentials",
    "*.tfstate": "Terraform's state, which contains secrets",
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
"""Globs of public keys and example files, which are not private."""

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
"""Name patterns of backup copies made by Emacs, nano, vim and people."""


def with_backup_copy_globs(globs: Iterable[str]) -> tuple[str, ...]:
    """Return the globs, each followed by globs of its backup copies."""
    return tuple(dict.fromkeys(chain.from_iterable((glob, *_globs_of_copies(glob)) for glob in globs)))


def _globs_of_copies(glob: str) -> Iterator[str]:
    folder, slash, name = glob.rpartition("/")
    for form in _COPIES:
        copy = form.format(name)
        # A star at the start or end of the name also covers what the pattern would add there.
        copy = "*" + copy.partition("*")[2] if name.startswith("*") else copy
        copy = copy.rpartition("*")[0] + "*" if name.endswith("*") else copy
        yield f"{folder}{slash}{copy}"
