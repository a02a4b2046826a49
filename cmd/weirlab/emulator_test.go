// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// Usage errors exit with 2 before anything listens.
func TestEmulatorRefusesBadInput(t *testing.T) {
	dir := t.TempDir()
	faults, seed := filepath.Join(dir, "faults.yaml"), filepath.Join(dir, "seed.json")
	writeFile(t, faults, "rules: [{action: {status: 1}}]")
	writeFile(t, seed, "{}")
	azure := filepath.Join(dir, "azure.json")
	writeFile(t, azure, `{"behaviour":{"overlap":"fight"}}`)
	for args, want := range map[string]string{
		"--listen 0.0.0.0:0":                          "not a loopback address",
		"--listen :0":                                 "not a loopback address",
		"--listen 192.0.2.1:0":                        "--anyone-on-the-network-may-change-state",
		"--admin-listen [::]:0":                       "--admin-listen",
		"--listen example.org:0":                      "not a loopback address",
		"--listen nonsense":                           "host:port",
		"--overlap fight":                             "lock-429",
		"--azure-behaviour " + seed:                   "which is missing",
		"--azure-behaviour " + azure:                  "is invalid",
		"--throttle some":                             "use on or off",
		"--latency slow":                              "use quiet (recorded without machines) or busy",
		"--latency-scale -1":                          "out of range",
		"--latency-scale x":                           "latency-scale",
		"--output xml":                                "use text or json",
		"--tls-certificate-out x":                     "needs --tls",
		"--faults " + faults:                          "rules[0].action.status",
		"--faults " + filepath.Join(dir, "none.yaml"): "none.yaml",
		"--seed-file " + seed:                         "array",
		"--zones 1,1":                                 "different zones",
		"--role " + seed:                              "no Actions",
		"--what":                                      "unknown flag",
		"surplus":                                     "surplus",
	} {
		err := execute(t.Context(), strings.NewReader(""), io.Discard, strings.Fields(args)...)
		coded, ok := errors.AsType[usageError](err)
		if !ok || coded.ExitCode() != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want code 2 and %q", args, err, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for args, want := range map[string]int{
		"--help": 0, "emulator --help": 0, "emulater": 2, "--nonsense": 2, "emulator --listen 0.0.0.0:0": 2,
		"emulator --listen 127.0.0.1:99999": 1,
		"demo --help":                       0, "demo --nodes 4": 2, "demo --nodes many": 2, "demo --output xml": 2, "demo surplus": 2,
		"remote --help": 0, "remote --away soon": 2, "remote --away 2h": 2, "remote --bytes-per-second 1": 2, "remote --reset-percent 101": 2, "remote surplus": 2,
	} {
		if got := run(strings.Fields(args)); got != want {
			t.Errorf("weirlab %s ends with %d, want %d", args, got, want)
		}
	}
}

// A report configures the emulator; a flag overrides it.
func TestEmulatorTakesABehaviour(t *testing.T) {
	defer goleak.VerifyNone(t)
	report := filepath.Join(t.TempDir(), "report.json")
	writeFile(t, report, `{"weir":"v1","behaviour":{"overlap":"conflict-409","poolIfMatch":"ignored"}}`)
	e := start(t, "--azure-behaviour", report, "--overlap", "lock-429", "--exit-with-stdin")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if status, body := get(t, client, e.Admin+"config", ""); status != 200 || !strings.Contains(body, `"overlap":"lock-429","poolIfMatch":"ignored"`) {
		t.Errorf("%d %s", status, body)
	}
	e.closeStdin()
	if err := <-e.ended; err != nil {
		t.Error(err)
	}
}

// A parent starts the emulator, reads one line, uses both listeners, and stops it by closing standard input.
func TestEmulatorServesUntilStdinCloses(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := start(t, "--token", "secret-canary", "--latency-scale", "0", "--exit-with-stdin")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	lbs := e.Endpoint + "/subscriptions/s/providers/Microsoft.Network/loadBalancers?api-version=2025-05-01"
	if status, _ := get(t, client, lbs, "wrong"); status != 401 {
		t.Errorf("another token: %d", status)
	}
	if status, body := get(t, client, lbs, "secret-canary"); status != 200 || body != `{"value":[]}` {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get(t, client, e.Endpoint+"/_emu/healthz", "secret-canary"); status == 200 {
		t.Error("the ARM endpoint serves the admin API")
	}
	if status, body := get(t, client, e.Admin+"calls", ""); status != 200 || strings.Count(body, "\n") != 3 || strings.Contains(body, "canary") {
		t.Errorf("%d %s", status, body)
	}
	e.closeStdin()
	if err := <-e.ended; err != nil {
		t.Error(err)
	}
}

func TestEmulatorOverTLSEndsOnSIGTERM(t *testing.T) {
	defer goleak.VerifyNone(t)
	certificate := filepath.Join(t.TempDir(), "emulator.pem")
	e := start(t, "--tls", "--tls-certificate-out", certificate)
	defer e.closeStdin()
	pem, err := os.ReadFile(certificate) //nolint:gosec // of this test
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	if !trust.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", pem)
	}
	if strings.Contains(string(pem), "PRIVATE") {
		t.Error("the key left the process")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}}}
	if status, body := get(t, client, e.Admin+"healthz", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-e.ended; err != nil {
		t.Error(err)
	}
}

type served struct {
	Endpoint string `json:"endpoint"`
	Admin    string `json:"admin"`

	closeStdin func()
	ended      chan error
}

// start runs the command on free ports and reads its output.
func start(t *testing.T, args ...string) *served {
	t.Helper()
	stdin, feed := io.Pipe()
	printed, out := io.Pipe()
	s := &served{ended: make(chan error, 1), closeStdin: func() { _ = feed.Close() }}
	args = append(args, "-o", "json", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	go func() {
		err := execute(context.WithoutCancel(t.Context()), stdin, out, args...)
		s.ended <- errors.Join(err, out.Close())
	}()
	line, err := bufio.NewReader(printed).ReadString('\n')
	if err = errors.Join(err, json.Unmarshal([]byte(line), s)); err != nil {
		t.Fatalf("%q: %v; %v", line, err, <-s.ended)
	}
	return s
}

func execute(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	cmd := newEmulatorCommand()
	cmd.SilenceErrors = true
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(out)
	return cmd.ExecuteContext(ctx)
}

func get(t *testing.T, client *http.Client, target, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
