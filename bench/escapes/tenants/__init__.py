"""Two tenants on one host: the whole corpus in the workspace of one, judged by what is the other's.

Nothing of the other's may be read, changed, reached or ended; the template that both began with stays as it is.
The tenant who attacks has a policy that allows everything: what is between tenants must hold without it. Attacks
on the host side (`--family host`) keep the default policy, which some of them are about.
"""
