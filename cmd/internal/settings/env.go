package settings

import (
	"sort"
	"strings"

	"github.com/spf13/pflag"
)

// NoEnv is the key of the annotation of flags that no environment variable sets, such as the filters of a list: a proxy's
// UPSTRAND_ZONE must not narrow what its operator sees.
const NoEnv = "upstrand_no_env"

// HasEnv reports whether a flag takes its value from the environment.
func HasEnv(f *pflag.Flag) bool {
	_, no := f.Annotations[NoEnv]
	return !no && f.Name != "help"
}

// TakesEnv reports whether any flag takes its value from the environment.
func TakesEnv(fs *pflag.FlagSet) (takes bool) {
	fs.VisitAll(func(f *pflag.Flag) { takes = takes || HasEnv(f) })
	return takes
}

// ApplyEnv gives each flag that the command line did not set the value of its environment variable. An empty variable
// counts as absent, since compose files and unit files pass those for what they leave out. Problems are returned only for
// flags that were not declared through a Group; the others report theirs in Set.Problems.
func ApplyEnv(fs *pflag.FlagSet, environ []string) Problems {
	env := parse(environ)
	var bad Problems
	fs.VisitAll(func(f *pflag.Flag) {
		v := env[EnvName(f.Name)]
		if f.Changed || v == "" || !HasEnv(f) {
			return
		}
		if err := fs.Set(f.Name, v); err != nil {
			bad = append(bad, Problem{Flag: f.Name, Value: v, Allowed: "allowed: a value of type " + f.Value.Type()})
		}
	})
	return bad
}

// Unknown is an environment variable with our prefix that no flag has, most likely a slip of the pen.
type Unknown struct {
	Name    string
	Nearest string // the known variable most like it; empty when none is close
}

// elsewhere are variables with our prefix that are no settings: the Makefile, the tests, docker-compose.yml and the programs
// among themselves use them.
var elsewhere = map[string]bool{
	"UPSTRAND_KAFKA_JARS": true, "UPSTRAND_CACHE": true, "UPSTRAND_REAL": true, "UPSTRAND_FULL": true, "UPSTRAND_KEEP": true,
	"UPSTRAND_BINARIES": true, "UPSTRAND_IMAGE": true, "UPSTRAND_DEMO_IMAGE": true, "UPSTRAND_DB_PASSWORD_FILE": true,
	"UPSTRAND_HANDOVER": true, // a process sets it for the one that takes its place
}

// UnknownEnv lists the variables of environ that carry our prefix and are not in known, sorted by name. Variables that
// Kubernetes sets for its Services (UPSTRAND_REGISTRY_SERVICE_HOST, …_PORT_8090_TCP) are left out: nobody wrote those.
func UnknownEnv(environ []string, known map[string]bool) []Unknown {
	var list []Unknown
	for name := range parse(environ) {
		if !strings.HasPrefix(name, Prefix) || known[name] || elsewhere[name] || strings.HasPrefix(name, Prefix+"TEST_") || serviceLink(name) {
			continue
		}
		list = append(list, Unknown{Name: name, Nearest: Nearest(name[len(Prefix):], known, Prefix)})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

func serviceLink(name string) bool {
	return strings.HasSuffix(name, "_SERVICE_HOST") || strings.Contains(name, "_SERVICE_PORT") ||
		strings.Contains(name, "_PORT_") && (strings.Contains(name, "_TCP") || strings.Contains(name, "_UDP"))
}

func parse(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	return env
}

// Nearest is the known name with the fewest edits, as long as these are at most a third of the word; else it is empty.
// The known names begin with prefix, which word lacks and which does not count.
func Nearest(word string, known map[string]bool, prefix string) string {
	best, fewest := "", (len(word)+2)/3+1
	for k := range known {
		d := edits(word, strings.TrimPrefix(k, prefix))
		if d < fewest || d == fewest && best != "" && k < best {
			best, fewest = k, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two short names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
