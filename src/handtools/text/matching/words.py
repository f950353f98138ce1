"""Words: those that one slip of the pen turns into another word; who wrote one may well have meant it."""

_WORDS = """
abort about accent accept adapt adapted adapter adopt adopted adopter after alike alive alone along alter
among angel angle assert asserts asset assets atone backed backend bared barred bases basics basis beads beams
beard bears began begin being bench berms black blank blink block blown board boarder border brawn bread bride
bridge bring broad brown bunch caches caching cafile calls canal caption cards cares carnal carts cased cases
casing casting casts casual catches catching catfile causal cause caused causes causing caution cells chance
chances change changes charge chars charts choose chose chtype clarify clarity clash clause clauses cleaned
cleaning cleanly cleans cleared clearing clearly clears click clock clone cloned cloning close closed closer
closing clover clown coarse codecs codes coding comes coming command commend commute compact compat compete
compiled compilers compiles complement complete complied compliment compute confirm conform consumers consumes
contact content contents contest context contexts contiguous continuous contract contrast cores costs count
country county course court cover crash crate create crown ctype curse curses curves dairy deals death decay
decide decided decides deciding decls decode decoded decodes decoding defect delay depth derive desert dessert
detect device devise diary direct dirent drain drawn drive drown edited editing edits elseif elsif emits exist
existed existing exists exited exiting exits expensive extensive failing fails falling falls falter farce
favor fdopen fflush fiber files filling fills filter finder finding finer fired fitter fixed fixer fixes flags
flame flaps flavor flown flush fname folks fopen force forced forcing forget forgot forked forking forks
formed forms forth fourth frame fread freed frown funding gained getgid getpid getppid getuid grace grade
grained grape groan grope grown handed handled handlers handles hands hangs hatch header heads heaps hears
heater hitch hoisted horse hosted house ident identifiers identifies identify identities identity ifdef ifndef
impart import indeed indent indexed infer initializers initializes inner insect insert inserted inset inspect
install instill intent inter internal internals interval intervals invert inverted keyed keygen keyid keylen
lacking lacks latent later latest latter layer leader leading leads leaking leaks leaps leaving letter
libexslt libxslt lines linker linking links linter linting listing lives loader loading loads locale locales
locals locate locked locking locks logger longer looked looking looks looping loops lords loser lover lower
macos macro macros maker making manage managers manages manpage march marked marker marking marks masked masks
massage master match matchers matches matter message micro mkdtemp mkstemp mktime modal model models modes
modifiers modifies modules modulus moves mtime muster mutter naive native never newer nodejs nodes noise noose
notes older order outline outlive overlay overly packed packet packing packs pager paint painter palace paper
parens parent parentheses parenthesis parents parity parse parsed parser parsers parses parsing parts party
passed passer passes passing passwd patch patent patents pause paused peace phase phone photo phrase picked
picking picks pitch place plane planed planet planing planned planning plant plate pocket point pointed
pointer pointing points polling pooling porting ports poser posting posts power prefs prepend present
presented presents preset press pretend prevent prevented prevents price prime print printed printer printing
prints prize probe produces products project projects prone properly property prose protect protects proto
prove providers provides purse qualify quality quiet quite quote races rates react reader readers reads
realpath rebind redact refuse refused related relaxed relay relies relpath remain remains remote remove render
renders replay replies reply report require requite reside resize resolve resort retain retains reuse reused
reversed reverted revise revive revolve rewind roads roles rouse route rules safely safety sample sampler
saves saving saying scale scare scared scarred schemas schemes scope score scout script scrypt search seeing
seeking semctl semver series server servers serves setgid setsid setting setuid sever shade shake shall
shallow shame shape shapes share shares shell shift shims shipped shipping ships shirt shmctl shone shore
shout shows sides simple simpler singe single sites sitting sizes skipped skipping skips slack slash slaves
slice slots slows small smart smoke snake sneak snprintf space spade spans spawns speak specifics specifiers
specifies speed spend spilt splice split spoke spore sport spout spring sprintf srand stable stack staff stage
staged stages stake stale stand staple starch stare staring starred stars start started starts stash state
stated states stats statue stature status statute stays stdio steak steam stepping steps stick sting stitch
stoke stone stopping stops storage store storing stout stowage stream strict stride strike string stripe
strlen strnlen strobe stroke strong struct stubtest stuck studio stuff style sublet submit subnet subset subst
subtest suites summary summery summit swallow swash swift switch taken teams terms tests texts thank thanks
theme there these things think thinks those though thread three threw through throughout throughput throw
thunk timers times tithe title token touch tough traced tracer traces tracing track tracked tracker tracking
tracks trail tread trees trial trick tries truck trunk tuned turned ulink unable unbind undef unicode unicore
unlink unload unloaded unref unwind uplink upload uploaded uptime usable utime value values valve valves
vector verify versify vertex victor vortex waiting waits wants watch whenever wherever while white whole whose
widow window witch wording words working works world worms would write writers writes writing wrote
"""
CONFUSABLE = frozenset(_WORDS.split())
