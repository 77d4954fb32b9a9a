package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway/manifest"
	"slipway/verify/boot/local"
	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
)

// place is where a submission is started: a sandbox, or this machine as it is.
type place interface {
	submission() string // its folder there
	home() string       // a writable folder, empty at first
	start(argv, environment []string, directory string, output io.Writer) (process, error)
	outside() string // the IPv4 address at which another machine would find it; "" where only loopback can be tried
	dial(ctx context.Context, network, address string) (net.Conn, error)
	alive() ([]string, error) // commands of the processes that the submission started and that still run
	bound(port int) bool      // somebody listens there
	listening() []int         // the ports where anybody does; nil where that cannot be told
	conditions() []report.Condition
	trace() *sandbox.Trace // nil where nothing is traced
	killAll() error        // ends all that still runs
	close() error          // that too, and nothing of the place is left
}

// process is the started serve.sh.
type process interface {
	Signal(syscall.Signal) error
	Exited() <-chan struct{}
	Err() error // waits for the end; nil for exit status 0
}

// barePlace is this machine, for one start at a time.
type barePlace struct {
	folder, homeFolder string
	why                string   // there is no sandbox
	asked              []string // conditions beside bareConditions that were asked for
	current            *local.Group
	keeper             *sandbox.Keeper // ends what is left should this program be killed
}

func (b *barePlace) submission() string { return b.folder }
func (b *barePlace) home() string       { return b.homeFolder }
func (b *barePlace) outside() string    { return "" }

func (b *barePlace) start(argv, environment []string, directory string, output io.Writer) (process, error) {
	command := exec.Command(argv[0], argv[1:]...)
	command.Dir, command.Env = directory, environment
	group, err := local.StartGroup(command, output)
	if err != nil {
		return nil, err
	}
	b.current = group
	return group, b.keeper.Group(group.PID())
}

func (b *barePlace) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

func (b *barePlace) alive() ([]string, error) {
	if b.current == nil {
		return nil, nil
	}
	var all []string
	if b.current.Lives() {
		all = b.current.Members()
	}
	for _, pid := range local.Strays(b.homeFolder, b.current.PID()) {
		all = append(all, local.StrayText(pid))
	}
	return all, nil
}

func (b *barePlace) bound(port int) bool {
	connection, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// listening cannot tell whose of this machine's ports are the submission's.
func (b *barePlace) listening() []int { return nil }

// bareConditions are those of a grader's machine that only a sandbox has.
var bareConditions = []string{
	sandbox.OwnNetwork, sandbox.ReadOnlySubmission, sandbox.SmallShared, sandbox.SmallTemp, sandbox.AnotherUser, sandbox.NoPrivilege, sandbox.ConfinedWrites, sandbox.Traced,
}

func (b *barePlace) conditions() []report.Condition {
	all := []report.Condition{{Name: sandbox.CleanEnvironment, Held: true, Detail: "only the given variables"}}
	for _, name := range append(slices.Clone(bareConditions), b.asked...) {
		all = append(all, report.Condition{Name: name, Detail: b.why})
	}
	return all
}

func (b *barePlace) trace() *sandbox.Trace { return nil }

func (b *barePlace) killAll() error {
	if b.current != nil {
		b.current.End(0)
		local.EndStrays(b.homeFolder, b.current.PID())
	}
	return nil
}

func (b *barePlace) close() error {
	defer func() { b.keeper.Stop(); b.keeper = nil }()
	return b.killAll()
}

// sandboxPlace is a sandbox.
type sandboxPlace struct {
	*sandbox.Sandbox
	at, homeFolder string
	without        []string // what is installed here, and not in the image
}

func (s *sandboxPlace) submission() string { return s.at }
func (s *sandboxPlace) home() string       { return s.homeFolder }
func (s *sandboxPlace) outside() string    { return s.Address() }

func (s *sandboxPlace) start(argv, environment []string, directory string, output io.Writer) (process, error) {
	started, err := s.Start(sandbox.Command{Argv: argv, Env: environment, Dir: directory, Output: output})
	if err != nil {
		return nil, err
	}
	return started, nil
}

func (s *sandboxPlace) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.Dial(ctx, network, address)
}

func (s *sandboxPlace) alive() ([]string, error) {
	processes, err := s.Processes()
	var all []string
	for _, p := range processes {
		all = append(all, fmt.Sprintf("process %d, %s", p.PID, p.Command))
	}
	return all, err
}

func (s *sandboxPlace) bound(port int) bool {
	return slices.Contains(s.listening(), port)
}

func (s *sandboxPlace) listening() []int {
	ports, err := s.Listening()
	if err != nil {
		return nil
	}
	return append([]int{}, ports...)
}

func (s *sandboxPlace) conditions() []report.Condition {
	var all []report.Condition
	for _, c := range s.Conditions() {
		all = append(all, report.Condition{Name: c.Name, Held: c.Held, Detail: c.Detail})
	}
	if len(s.without) > 0 {
		all = append(all, report.Condition{Name: withoutAbsent, Held: true, Detail: strings.Join(s.without, ", ")})
	}
	return all
}

func (s *sandboxPlace) trace() *sandbox.Trace {
	for _, c := range s.Conditions() {
		if c.Name == sandbox.Traced && !c.Held {
			return nil
		}
	}
	trace, err := s.Trace()
	if err != nil {
		return nil // closed
	}
	return &trace
}

func (s *sandboxPlace) killAll() error { return s.KillAll() }
func (s *sandboxPlace) close() error   { return s.Close() }

// open makes the place of one start. name is the folder that the submission
// lies in there.
func (r *Rehearsal) open(ctx context.Context, name string) (place, error) {
	why := "not asked for: --bare"
	if !r.Bare {
		opened, err := r.openSandbox(ctx, name)
		if err == nil {
			return opened, nil
		}
		if !errors.Is(err, sandbox.ErrUnsupported) {
			return nil, err
		}
		why = err.Error()
	}
	return r.openBare(name, why)
}

// openLike opens a later place, which must be one of the same kind as the first:
// what a sandbox held must not silently be missing.
func (r *Rehearsal) openLike(ctx context.Context, o *observed, name string) (place, error) {
	if o.bare {
		return r.openBare(name, "as the first start")
	}
	return r.openSandbox(ctx, name)
}

func (r *Rehearsal) openSandbox(ctx context.Context, name string) (place, error) {
	absent := r.absentHere()
	options := r.sandboxOptions(name)
	options.LeaveOut = absent.paths
	opened, err := sandbox.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return &sandboxPlace{Sandbox: opened, at: name, homeFolder: homeInside, without: absent.names}, nil
}

// openBare gives the submission's folder the name that a start wants; what the
// server writes there stays.
func (r *Rehearsal) openBare(name, why string) (place, error) {
	folder, home := filepath.Join(r.Work, filepath.Base(name)), filepath.Join(r.Work, "home")
	if folder != r.Folder {
		if err := os.Rename(r.Folder, folder); err != nil {
			return nil, fmt.Errorf("move the submission: %w", manifest.Cause(err))
		}
		r.Folder = folder
	}
	if err := os.RemoveAll(home); err != nil {
		return nil, err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	keeper, err := local.Keep(home)
	if err != nil {
		return nil, err
	}
	return &barePlace{folder: folder, homeFolder: home, why: why, keeper: keeper, asked: r.asked()}, nil
}

// asked are the conditions that hold only where somebody asks for them.
func (r *Rehearsal) asked() (names []string) {
	for name, asked := range map[string]bool{sandbox.NoExecSubmission: r.noExec(), sandbox.MemoryLimit: r.Memory > 0, sandbox.CPULimit: r.CPUs > 0, withoutAbsent: len(r.absentHere().names) > 0} {
		if asked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sandboxOptions are the grader's machine, as far as the profile's image
// describes it; where it does not, the harsher of what graders were seen to have.
func (r *Rehearsal) sandboxOptions(at string) sandbox.Options {
	return sandbox.Options{
		Submission: r.Folder, At: at, NoExec: r.noExec(), Hide: r.Hide, User: r.user(),
		SharedMemory: r.volume("/dev/shm", sandbox.Volume{NoExec: true}), Temp: r.volume("/tmp", sandbox.Volume{}),
		Memory: r.Memory, CPUs: r.CPUs, GPU: r.GPU,
	}
}

// lies is where the grader puts submissions.
func (r *Rehearsal) lies() string {
	if r.Profile.Image != nil && r.Profile.Image.Submission != "" {
		return r.Profile.Image.Submission
	}
	return "/submission"
}

// noExec reports whether the submission lies on a mount without exec.
func (r *Rehearsal) noExec() bool {
	mount, ok := r.Profile.Image.MountOf(r.lies())
	return r.NoExec || ok && mount.Path != "/" && mount.NoExec != nil && *mount.NoExec
}

// volume is a mount of the grader's machine as the image describes it.
func (r *Rehearsal) volume(path string, v sandbox.Volume) sandbox.Volume {
	mount, ok := r.Profile.Image.MountOf(path)
	if !ok || mount.Path != path {
		return v
	}
	v.Bytes = mount.Bytes
	if mount.NoExec != nil {
		v.NoExec = *mount.NoExec
	}
	if mount.ReadOnly != nil {
		v.ReadOnly = *mount.ReadOnly
	}
	return v
}

// anotherUser is the uid of the server where nobody knows the grader's: not
// root's, and not that of whoever built the submission.
const anotherUser = 12345

func (r *Rehearsal) user() int {
	if r.Profile.Image != nil && r.Profile.Image.User != nil {
		return *r.Profile.Image.User
	}
	return anotherUser
}

// homeInside is the HOME in a sandbox: its root cannot be written.
const homeInside = "/tmp/home"

// systemPath is where programs are on every machine.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// path is the PATH of a place: without what is hidden there.
func (r *Rehearsal) path(p place) string {
	if _, bare := p.(*barePlace); bare && r.Path != "" {
		return r.Path
	}
	var kept []string
	for _, folder := range append(filepath.SplitList(r.Path), systemPath...) {
		if filepath.IsAbs(folder) && !within(folder, r.Hide...) && !slices.Contains(kept, folder) {
			kept = append(kept, folder)
		}
	}
	return strings.Join(kept, ":")
}
