package ops

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

// change is the flags of a command that changes what is declared, and what it is given.
type change struct {
	author, comment   string
	dryRun, yes, wait bool
	timeout           time.Duration

	in  io.Reader // where a person answers
	out *printer
	cl  *client.Client
}

// changing declares the flags of a change.
func changing(cmd *cobra.Command) *change {
	ch := &change{}
	f := cmd.Flags()
	f.StringVar(&ch.author, "author", "", "who asks; USER@HOST unless given")
	f.StringVar(&ch.comment, "comment", "", "why, for the history")
	f.BoolVar(&ch.dryRun, "dry-run", false, "show what would happen, and change nothing")
	f.BoolVarP(&ch.yes, "yes", "y", false, "don't ask")
	f.BoolVar(&ch.wait, "wait", false, "wait until a version with the change is published, and say its number")
	f.Var((*ago)(&ch.timeout), "timeout", "how long to wait")
	ch.timeout = 30 * time.Second
	f.Lookup("timeout").DefValue = "30s"
	return ch
}

// begin fills in what only the run knows.
func (ch change) begin(cmd *cobra.Command, cl *client.Client, out *printer) *change {
	if ch.author == "" {
		ch.author = whoAmI()
	}
	ch.in, ch.out, ch.cl = cmd.InOrStdin(), out, cl
	return &ch
}

// whoAmI is USER@HOST, as far as they are known.
func whoAmI() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	} else if env := os.Getenv("USER"); env != "" {
		name = env
	}
	if h, err := os.Hostname(); err == nil && h != "" {
		host = h
	}
	return name + "@" + host
}

func topologyApply(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "apply FILE", Short: "Declare upstreams, upstrands and routes", Args: args.One("FILE", "- reads standard input"),
		Long: "Declare a file of upstreams, upstrands and routes in nginx's syntax. All declared files together are checked against the\n" +
			"live registry; what becomes of the published topology is shown, and on a yes it is carried out. Declared names win over\n" +
			"those that follow from beats. The text takes the place of what was declared under the name before; the history is kept:\n" +
			"see topology declared.\n\n" +
			"In the file: upstream NAME { server …; discover SERVICE [zone=…] [version=…] [tag=…]; … }, upstrand NAME { … }, and\n" +
			"routes as server { server_name HOST; location /PATH { proxy_pass http://NAME; } }. A route takes PATH and all below it,\n" +
			"and leads to an upstream or to $upstrand_NAME.",
		Example: "  upstrand topology apply canary.conf --comment 'version 2 first'\n  upstrand topology apply pools.conf --name pools --yes --wait\n  upstrand topology apply - --dry-run < canary.conf",
	}
	name := cmd.Flags().String("name", "main", "name that the file is declared under")
	flags := changing(cmd)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, files []string) error {
		text, err := readFile(cmd, files[0])
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("%s is empty, and all that %s declares would go: upstrand topology declared delete %s does that", files[0], *name, *name)
		}
		ch, place := flags.begin(cmd, cl, out), files[0]
		if place == "-" {
			ch.in = nil // it was the file
			place = ""  // places go by the declared name, as in the texts of faults
		}
		return ch.make(ctx, place, wire.DeclareRequest{Name: *name, Text: text}, cl.Declare)
	})
	return cmd
}

// readFile reads the text that is to be declared. What is not UTF-8 would not arrive as it is.
func readFile(cmd *cobra.Command, path string) (string, error) {
	var text []byte
	var err error
	if path == "-" {
		text, err = io.ReadAll(cmd.InOrStdin())
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return "", err
	}
	line := 0
	for part := range bytes.Lines(text) {
		if line++; !utf8.Valid(part) {
			return "", fmt.Errorf("%s:%d: the text is not UTF-8", path, line)
		}
	}
	return string(text), nil
}

// make shows what a change does and, after a yes, carries out just that: when the declared topology was changed in
// between, it is refused. file is what the text was read from.
func (ch *change) make(ctx context.Context, file string, req wire.DeclareRequest, call func(context.Context, wire.DeclareRequest) (wire.DeclareAnswer, error)) error {
	req.Author, req.Comment, req.DryRun = ch.author, ch.comment, true
	answer, err := call(ctx, req)
	if err != nil {
		return ch.refused(file, req.Name, err)
	}
	if !ch.out.json {
		ch.show(file, req.Name, answer)
	}
	if ch.dryRun {
		return ch.asJSON(answer)
	}
	if err := ch.confirm(); err != nil {
		return err
	}
	req.DryRun, req.Expected = false, &answer.Revision
	if answer, err = call(ctx, req); err != nil {
		return ch.refused(file, req.Name, err)
	}
	return ch.finish(ctx, req.Name, answer)
}

func (ch *change) asJSON(answer wire.DeclareAnswer) error {
	if !ch.out.json {
		return nil
	}
	return ch.out.value(answer)
}

var errNo = errors.New("nothing was changed")

// confirm asks, unless --yes was given.
func (ch *change) confirm() error {
	if ch.yes {
		return nil
	}
	if f, ok := ch.in.(*os.File); ch.in == nil || ok && !isatty.IsTerminal(f.Fd()) {
		return fmt.Errorf("nobody can be asked here, so %w: give --yes, or --dry-run to look only", errNo)
	}
	fmt.Fprint(ch.out.err, "Carry it out? [y/N] ")
	line, err := bufio.NewReader(ch.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if word := strings.ToLower(strings.TrimSpace(line)); word != "y" && word != "yes" {
		return errNo
	}
	return nil
}

// finish tells what was done, and waits for the version if it shall.
func (ch *change) finish(ctx context.Context, name string, answer wire.DeclareAnswer) error {
	version := int64(0)
	if ch.wait && answer.Applied && answer.Records > 0 {
		var err error
		if version, err = ch.published(ctx, answer.Registry); err != nil {
			return fmt.Errorf("%s is declared as revision %d, but %w", name, answer.Revision, err)
		}
	}
	switch {
	case ch.out.json:
		return ch.out.value(applied{answer, version})
	case !answer.Applied:
		fmt.Fprintf(ch.out.out, "%s was declared so already; nothing was changed (revision %d)\n", name, answer.Revision)
	case answer.Records == 0:
		fmt.Fprintf(ch.out.out, "%s: revision %d; nothing is to be published\n", name, answer.Revision)
	case version > 0:
		fmt.Fprintf(ch.out.out, "%s: revision %d, published as version %d\n", name, answer.Revision, version)
	default:
		fmt.Fprintf(ch.out.out, "%s: revision %d; the next version has it\n", name, answer.Revision)
	}
	return nil
}

// applied is what -o json prints of a change that was made.
type applied struct {
	wire.DeclareAnswer
	Version int64 `json:"version,omitempty"` // with --wait: the first that has it
}

// versionPoll is how often the registry is asked for the version.
const versionPoll = 200 * time.Millisecond

// published waits for the first version that was built from a registry revision, or a later one.
func (ch *change) published(ctx context.Context, revision int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, ch.timeout)
	defer cancel()
	tick := time.NewTicker(versionPoll)
	defer tick.Stop()
	for {
		list, err := ch.cl.Versions(ctx, client.Page{Limit: 100})
		found := int64(0)
		for _, v := range list.Versions { // newest first
			if v.Revision >= revision {
				found = v.Version
			}
		}
		if found > 0 {
			return found, nil
		}
		if err != nil && ctx.Err() == nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("no version has it after %v: is a confgen running? (upstrand topology versions, upstrand event ls)", ch.timeout)
		case <-tick.C:
		}
	}
}
