// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
	"weir.dev/weir/test/patient"
)

// probed is an emulated Azure and the program that probes it.
type probed struct {
	t        *testing.T
	dir, url string
	emu      *armemu.Emulator
}

func newProbed(t *testing.T, world behavior.Behavior) *probed {
	t.Helper()
	role, err := os.ReadFile("../../config/probe-azure-role.json")
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := armemu.ParseRole(role)
	if err != nil {
		t.Fatal(err)
	}
	p := &probed{t: t, dir: t.TempDir()}
	p.emu = patient.Watch(t, armemu.New(armemu.Options{Behavior: world, LatencyScale: 0.02, StrictResourceGroups: true, Throttle: armemu.AzureLimits(), Role: allowed}))
	server := httptest.NewServer(p.emu)
	t.Cleanup(server.Close)
	p.url = server.URL
	text := `{"subscriptionId": "11111111-1111-1111-1111-111111111111", "tenantId": "22222222-2222-2222-2222-222222222222", "resourceGroup": "rg", "location": "westeurope"}`
	if err := os.WriteFile(filepath.Join(p.dir, "azure.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs the program and returns its standard output, standard error and exit code. meanwhile, if
// not nil, is called with the process once a resource exists.
func (p *probed) run(meanwhile func(*os.Process), args ...string) (out, output string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	started := func(got *os.Process) {
		if meanwhile == nil {
			return
		}
		for !strings.Contains(string(p.emu.Snapshot()), "virtualMachines") && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		meanwhile(got)
	}
	of, err := process.RunToEnd(ctx, started, filepath.Join(bin, "weirlab"), append([]string{
		"probe-azure", "--config", filepath.Join(p.dir, "azure.json"), "--azure-endpoint", p.url}, args...)...)
	if err != nil {
		p.t.Fatal(err)
	}
	return of.Stdout, of.Stderr, of.Code
}

func (p *probed) empty(after string) {
	p.t.Helper()
	if remaining := strings.TrimSpace(string(p.emu.Snapshot())); remaining != "[]" {
		p.t.Errorf("%s: left behind: %s", after, remaining)
	}
}

// The program probes an Azure with its own role and writes a valid report; interrupted, it cleans
// up, and killed, it cleans up on the next run.
func TestTheProgramProbesAzure(t *testing.T) {
	runParallel(t)
	world := behavior.AssumedBehavior()
	world.Overlap, world.UpdateNewPools = behavior.Lock, behavior.Populated
	p := newProbed(t, world)
	file := filepath.Join(p.dir, "report.json")
	out, output, code := p.run(nil, "--yes", "--out", file)
	if code != 3 || !strings.Contains(out, "lock-429; assumed is supersede") || !strings.Contains(out, "9 of 10 questions are answered") {
		t.Errorf("exit code %d:\n%s\n%s", code, output, out)
	}
	p.empty("a whole run")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := world
	want.FailedParent = ""
	if got, err := armemu.ParseBehavior(raw); err != nil || got != want {
		t.Errorf("the report says %v, %v", got, err)
	}
	for _, id := range []string{"11111111", "22222222"} {
		if strings.Contains(string(raw)+out, id) {
			t.Errorf("%s is in the report", id)
		}
	}

	_, output, code = p.run(func(got *os.Process) { _ = got.Signal(os.Interrupt) }, "--yes")
	if code != 1 || !strings.Contains(output, "stopping: what was made is deleted first") || !strings.Contains(output, "\ndeleted\n") {
		t.Errorf("stopped: exit code %d: %s", code, output)
	}
	p.empty("stopped")

	p.run(func(got *os.Process) { _ = got.Signal(syscall.SIGKILL) }, "--yes")
	if _, output, code = p.run(nil, "--clean", "--yes"); code != 0 || !strings.Contains(output, "\ndeleted weir-probe-") {
		t.Errorf("after a crash: exit code %d: %s", code, output)
	}
	p.empty("after a crash")

	for want, args := range map[int][]string{1: {}, 2: {"--yes", "--location", "a/b"}} {
		if _, messages, code := p.run(nil, args...); code != want {
			t.Errorf("%v: exit code %d: %s", args, code, messages)
		}
	}
}
