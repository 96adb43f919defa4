package certs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// TestWhatIsWrong: each error names the file and says what is wrong with it.
func TestWhatIsWrong(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "a", ca.Leaf([]string{"a.example"}))
	_, other := certstest.Write(t, dir, "b", ca.Leaf([]string{"b.example"}))
	_, rsa := certstest.Write(t, dir, "r", ca.Leaf([]string{"r.example"}, certstest.RSA(t)))
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		certstest.Put(t, path, []byte(text))
		return path
	}
	text, _ := os.ReadFile(cert)
	for name, tc := range map[string]struct {
		set  Settings
		want []string
	}{
		"no certificate":    {Settings{Pairs: []Pair{{dir + "/none", key}}}, []string{"certificate: open " + dir + "/none"}},
		"a folder":          {Settings{Pairs: []Pair{{dir, key}}}, []string{dir, "no regular file"}},
		"no PEM":            {Settings{Pairs: []Pair{{file("x", "hello"), key}}}, []string{dir + "/x", "no PEM certificate is in it"}},
		"the key in place":  {Settings{Pairs: []Pair{{key, key}}}, []string{key, "no PEM certificate is in it"}},
		"broken":            {Settings{Pairs: []Pair{{file("y", string(text)+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), key}}}, []string{dir + "/y", "the second certificate"}},
		"a broken block":    {Settings{Pairs: []Pair{{file("z", strings.Replace(string(text), "\nMII", "\n?II", 1)+string(text)), key}}}, []string{dir + "/z", "2 PEM blocks begin in it, and 1 of them"}},
		"cut short":         {Settings{CA: file("s", string(text)+"\n"+string(text[:len(text)/2]))}, []string{"authorities " + dir + "/s", "2 PEM blocks begin in it, and 1 of them"}},
		"no key":            {Settings{Pairs: []Pair{{cert, dir + "/none"}}}, []string{"key: open " + dir + "/none"}},
		"no key in it":      {Settings{Pairs: []Pair{{cert, cert}}}, []string{cert, "no PEM private key"}},
		"another key":       {Settings{Pairs: []Pair{{cert, other}}}, []string{other, "does not belong to the certificate in " + cert}},
		"another kind":      {Settings{Pairs: []Pair{{cert, rsa}}}, []string{rsa, "the certificate is ECDSA, the key is RSA"}},
		"password":          {Settings{Pairs: []Pair{{cert, file("p", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")}}}, []string{"has a password", "openssl pkey"}},
		"old password":      {Settings{Pairs: []Pair{{cert, file("q", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: DES-EDE3-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n")}}}, []string{"has a password"}},
		"broken key":        {Settings{Pairs: []Pair{{cert, file("k", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")}}}, []string{dir + "/k", "can't be read"}},
		"authorities":       {Settings{CA: dir + "/none"}, []string{"authorities: open"}},
		"empty authorities": {Settings{Trusted: file("e", "")}, []string{"authorities " + dir + "/e", "no PEM certificate"}},
		"ticket key":        {Settings{TicketKeys: []string{file("t", "short")}}, []string{"has 5 bytes", "48 or 80"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := new(Store).Server(tc.set, false)
			if err == nil {
				s.Close()
				t.Fatal("it can be used")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q in it", err, want)
				}
			}
			if strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("%q has several lines", err)
			}
		})
	}
}

// TestOneFile: a certificate and its key may stand in one file, whatever comes first.
func TestOneFile(t *testing.T) {
	cert, key := certstest.Texts(t, certstest.New(t, "ca").Leaf([]string{"a.example"}))
	for name, text := range map[string]string{"cert": string(cert) + string(key), "key": "# both\n" + string(key) + string(cert)} {
		path := filepath.Join(t.TempDir(), name)
		certstest.Put(t, path, []byte(text))
		s, err := new(Store).Server(Settings{Pairs: []Pair{{path, path}}}, false)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}
