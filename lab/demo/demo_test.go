// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/process"
)

// realOptions returns options with the built programs.
func realOptions(t *testing.T, explanation ...step) (opts Options, out, lines *bytes.Buffer) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts kube-apiserver; make test does not leave it out")
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"kubelab", "weir", "weir-provisioner", "weirlab"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			t.Fatalf("%v: run make kubelab build first, as make test does", err)
		}
	}
	t.Setenv("TMPDIR", t.TempDir())
	out, lines = &bytes.Buffer{}, &bytes.Buffer{}
	return Options{
		Nodes: 6, Seed: 1, JSON: true, Out: out, Err: lines,
		programFolder: bin, emulatorPath: filepath.Join(bin, "weirlab"), steps: explanation,
	}, out, lines
}

func summaryOf(t *testing.T, out *bytes.Buffer) Summary {
	t.Helper()
	var s Summary
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("notes: %q", s.Notes) // of a busy machine
	return s
}

// leftoverFiles returns what a run left in the temporary folder.
func leftoverFiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAShortStoryAgainstRealProcesses(t *testing.T) {
	opts, out, lines := realOptions(t,
		step{name: "deploy", run: (*stage).createWorkloads},
		step{name: "nodes join", run: (*stage).addNodes},
		step{name: "controller killed", run: (*stage).killController},
		step{name: "service gone", run: (*stage).removeService})
	if err := Run(t.Context(), opts); err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	s := summaryOf(t, out)
	if !s.OK || len(s.Steps) != 4 || s.Total.Changes < 6 || s.Total.LagP50 <= 0 {
		t.Errorf("%+v", s)
	}
	// The load balancer is written for one or several Services that come or go, and it or a pool
	// for changed members. Batching depends on timing, but no write is without a change. The
	// minimum is its creation, one change of members after the restart, and a deleted Service.
	a := s.ARM
	if writes := s.Total.Writes + a.Balancers; a.Balancers < 2 || writes < 3 || writes > 4+s.Total.Changes {
		t.Errorf("%d writes of the load balancer and its pools for 4 Services that come or go and %d changes: %+v", writes, s.Total.Changes, a)
	}
	if a.Writes != s.Total.Writes+a.Balancers+a.PublicIPs+a.SecurityGroups || a.PublicIPs != 4 || a.SecurityGroups < 2 || a.SecurityGroups > 4 {
		t.Errorf("3 public IPs come and 1 goes, the security group is written for each at most, and nothing else is: %+v", a)
	}
	if wrote := s.Steps[1].Writes; wrote != 0 {
		t.Errorf("%d writes when nodes without pods joined", wrote)
	}
	checkLines(t, lines)
	if files := leftoverFiles(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// A pool that does not get in sync is named with all known reasons.
func TestAPoolThatStaysBehindFailsTheStory(t *testing.T) {
	pause := func(s *stage, ctx context.Context) error {
		s.deadline = 30 * time.Second
		if err := s.cluster.patchObject(ctx, &v1alpha1.BackendPool{}, namespace, "api.kubernetes", `{"spec":{"paused":true}}`); err != nil {
			return err
		}
		return s.cluster.scaleDeployment(ctx, "api", 8) // pods are spread, so all nodes get one
	}
	opts, out, lines := realOptions(t, step{name: "deploy", run: (*stage).createWorkloads}, step{name: "paused", run: pause})
	err := Run(t.Context(), opts)
	if _, ok := errors.AsType[*syncTimeoutError](err); !ok || err.Error() != "paused: not in sync after 30s" {
		t.Fatalf("%v\n%s", err, lines)
	}
	reported := regexp.MustCompile(`\s+`).ReplaceAllString(lines.String(), " ")
	for _, want := range []string{
		"FAILED paused: not in sync after 30s", "pool shop-api lacks 10.224.0.", "BackendPool api.kubernetes: Synced=", "Paused: ",
		"the controller's last lines: time=", "The logs of all processes are in ",
	} {
		if !strings.Contains(reported, want) {
			t.Errorf("nothing says %q:\n%s", want, lines)
		}
	}
	if s := summaryOf(t, out); s.OK || s.Failure == "" || s.Total.Lost == 0 || s.Pools[1].LagMax < 29000 { // pending until the end
		t.Errorf("%+v", s)
	}
	if files := leftoverFiles(t); len(files) != 1 {
		t.Errorf("kept: %v", files)
	}
}

// A pool is emptied and refilled behind the controller: all is in sync in the end, and the loss is
// reported.
func TestALossThatIsRepairedFailsTheStory(t *testing.T) {
	vandal := func(s *stage, ctx context.Context) error {
		if err := sleepContext(ctx, writeDelay); err != nil {
			return err
		}
		full, err := s.observer.azure.getJSON(ctx, "snapshot")
		if err != nil {
			return err
		}
		before, err := io.ReadAll(full)
		empty, bad := json.Marshal(seedResources())
		if err = errors.Join(err, bad, full.Close(), restoreSnapshot(ctx, s.lab.admin, empty)); err != nil {
			return err
		}
		seen := pollUntil(ctx, pollInterval, func() (bool, error) {
			all, _, _ := s.observer.newSummaries(time.Now())
			return all.Lost >= 3, nil
		})
		return errors.Join(seen, restoreSnapshot(ctx, s.lab.admin, before))
	}
	opts, out, lines := realOptions(t, step{name: "deploy", run: (*stage).createWorkloads}, step{name: "vandal", run: vandal})
	if err := Run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), " lost") {
		t.Fatalf("%v\n%s", err, lines)
	}
	if s := summaryOf(t, out); s.OK || s.Total.Lost < 3 || s.Total.Surplus != 0 || s.Total.ForeignLost != 0 {
		t.Errorf("%+v", s)
	}
}

// restoreSnapshot replaces the emulator's content.
func restoreSnapshot(ctx context.Context, admin string, snapshot []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, admin+"snapshot", bytes.NewReader(snapshot))
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

func TestInterruptedInTheMiddle(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var lab *lab
	opts, _, lines := realOptions(t, step{name: "deploy", run: func(s *stage, ctx context.Context) error {
		lab = s.lab
		defer interrupt()
		return s.createWorkloads(ctx)
	}})
	err := Run(ctx, opts)
	if end, ok := errors.AsType[Interrupted](err); !ok || end.ExitCode() != 130 {
		t.Fatalf("%v\n%s", err, lines)
	}
	for _, c := range []*process.Process{lab.controlPlane, lab.emulator, lab.controller.latest()} {
		<-c.Done()
	}
	if files := leftoverFiles(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// After head -3 no process or folder is left.
func TestClosedOutputLeavesNothing(t *testing.T) {
	opts, _, _ := realOptions(t, step{name: "deploy", run: (*stage).createWorkloads})
	opts.JSON, opts.Out = false, &closedPipe{left: 3}
	err := Run(t.Context(), opts)
	if gone, ok := errors.AsType[outputGone](err); !ok || gone.ExitCode() != 141 {
		t.Fatal(err)
	}
	if files := leftoverFiles(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
	if full := (outputGone{syscall.ENOSPC}); full.ExitCode() != 1 {
		t.Error(full.ExitCode())
	}
}

// lineTrigger acts when a line is printed.
type lineTrigger struct {
	bytes.Buffer
	at string
	do func()
}

func (l *lineTrigger) Write(p []byte) (int, error) {
	if l.do != nil && bytes.Contains(p, []byte(l.at)) {
		l.do()
		l.do = nil
	}
	return l.Buffer.Write(p)
}

// With Stay, the exit of any process ends the run and is reported as such, whichever component
// noticed it first.
func TestAProcessThatEndsWhileAllStaysIsNamed(t *testing.T) {
	for name, of := range map[string]func(*lab) *process.Process{
		"emulator": func(l *lab) *process.Process { return l.emulator },
		"weir":     func(l *lab) *process.Process { return l.controller.latest() },
	} {
		var lab *lab
		opts, out, _ := realOptions(t, step{name: "deploy", run: func(s *stage, ctx context.Context) error {
			lab = s.lab
			return s.createWorkloads(ctx)
		}})
		var lines *lineTrigger
		lines = &lineTrigger{at: "logs  ", do: func() {
			fetchPage(t, lines.String())
			if name == "weir" {
				runHelp(t, lines.String())
			}
			of(lab).KillUnexpectedly()
		}}
		opts.Stay, opts.Err = true, lines
		err := Run(t.Context(), opts)
		end, ok := errors.AsType[*process.UnexpectedExit](err)
		if !ok || end.Process.Name != name {
			t.Fatalf("%s: %v\n%s", name, err, lines)
		}
		if !strings.Contains(lines.String(), "FAILED  "+name+" ended by itself (signal: killed)") {
			t.Errorf("%s", lines)
		}
		if !summaryOf(t, out).OK {
			t.Error("the story itself went well")
		}
	}
}

// fetchPage fetches the page at its printed URL: it shows Weir's load balancer.
func fetchPage(t *testing.T, lines string) {
	resp, err := http.Get(regexp.MustCompile(`http://127.0.0.1:\d+/\w{20,}/`).FindString(lines))
	if err != nil {
		t.Errorf("%v: %s", err, lines)
		return
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !strings.Contains(string(body), loadBalancer+"</a>") {
		t.Errorf("%v, the page shows %s", err, body)
	}
}

// runHelp runs the commands that the end of the demo prints: each of them works, and status finds the leader.
func runHelp(t *testing.T, lines string) {
	_, after, found := strings.Cut(lines, "  export KUBECONFIG=")
	help, _, ended := strings.Cut(after, "\nAzure (ARM)")
	if !found || !ended {
		t.Fatalf("no commands: %s", lines)
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-ec", "set -x; export KUBECONFIG="+help).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, want := range []string{"In sync: 3 BackendPools, 3 Services.", " leads.", "this Weir serves", "backendAddressPools/shop-web", "is paused until", "scaled", "backendpool.weir.dev/web.kubernetes", "is resumed", "annotated", "weir_pool"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

func TestTheTimeLeftFollowsTheMachine(t *testing.T) {
	explanation := []step{{usual: 10}, {usual: 20}, {usual: 30}}
	for _, c := range []struct {
		done                int
		elapsed, last, want time.Duration // in seconds
	}{
		{1, 10, 0, 50},
		{1, 5, 0, 50},
		{1, 20, 0, 100},
		{2, 45, 100, 45},
		{2, 120, 50, 50}, // it never rises
		{3, 60, 45, 0},
	} {
		if got := estimateTimeLeft(explanation, c.done, c.elapsed*time.Second, c.last*time.Second); got != c.want*time.Second {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := estimateTimeLeft([]step{{}, {}}, 1, time.Second, 0); got != 0 {
		t.Error(got)
	}
	for _, s := range allSteps(true) {
		if s.usual == 0 {
			t.Errorf("step %s has no usual duration", s.name)
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	for nodes, fine := range map[int]bool{MinNodes - 1: false, MinNodes: true, MaxNodes: true, MaxNodes + 1: false, -1: false} {
		if err := (Options{Nodes: nodes}).Validate(); (err == nil) != fine {
			t.Errorf("--nodes %d: %v", nodes, err)
		}
	}
}

func TestAMissingProgramIsOneLine(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	empty := t.TempDir()
	opts := Options{Nodes: MinNodes, Out: io.Discard, Err: io.Discard, programFolder: empty}
	err := Run(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(empty, "kubelab")) || !strings.Contains(err.Error(), "make kubelab") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(empty, "kubelab"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "make build") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if files := leftoverFiles(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}
