// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/badlink"
	"weir.dev/weir/lab/process"
)

// scriptedUser reacts to printed lines in order.
type scriptedUser struct {
	bytes.Buffer
	actions []userAction
}

type userAction struct {
	at string
	do func()
}

func (s *scriptedUser) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	if len(s.actions) > 0 && bytes.Contains(b, []byte(s.actions[0].at)) {
		do := s.actions[0].do
		s.actions = s.actions[1:]
		do()
	}
	return n, err
}

// remoteOptions returns options with the built programs and an unavailable network.
func remoteOptions(t *testing.T, out io.Writer) RemoteOptions {
	t.Helper()
	opts, _, _ := realOptions(t)
	return RemoteOptions{
		Network: badlink.Network{BytesPerSecond: 5000, ResetPercent: 30}, Away: time.Hour, Out: out,
		programFolder: opts.programFolder, emulatorPath: opts.emulatorPath,
	}
}

// The remote cluster is provisioned once the network is available; without retries it is not.
// Ctrl-C ends everything and leaves nothing behind.
func TestARemoteClusterIsProvisioned(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	person := &scriptedUser{}
	find := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(person.String())
		if found == nil {
			t.Fatalf("%s is not said:\n%s", pattern, person)
		}
		return found[1]
	}
	patch := func(body string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPatch, find(`(http://127\.0\.0\.1:\d+/)`), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("PATCH %s: %s", body, resp.Status)
		}
	}
	// deployment checks the desired objects in a cluster.
	deployment := func(kubeconfig string) error {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		c, err := newCluster(config)
		if err != nil {
			return err
		}
		var found appsv1.Deployment
		return c.api.Get(ctx, client.ObjectKey{Namespace: "operators", Name: "operator"}, &found)
	}
	person.actions = []userAction{
		{"no other follows", func() { patch(`{"away":false,"bytesPerSecond":20000}`) }},
		{"all steps are done", func() {
			if err := deployment(find(`--kubeconfig (\S+)`)); err != nil {
				t.Errorf("the remote cluster: %v", err)
			}
			if err := deployment(find(`KUBECONFIG=(\S+)`)); !apierrors.IsNotFound(err) {
				t.Errorf("the cluster of Weir: %v", err)
			}
			patch(`{"away":true}`)
		}},
		{"network away", interrupt}, // printed at the start, too
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := Remote(ctx, remoteOptions(t, person)); err != nil {
		t.Fatalf("%v\n%s", err, person)
	}
	reported := regexp.MustCompile(`\s+`).ReplaceAllString(person.String(), " ")
	for _, want := range []string{
		"network away, for 1h0m0s", "store-17: attempt 1 has failed: connection reset by peer; the next follows after 10s",
		"store-17-once: attempt 1 has failed: connection reset by peer; no other follows",
		"network 20000 bytes/s each way, resets 30% of connections", "refused and ", "network away",
	} {
		if !strings.Contains(reported, want) {
			t.Errorf("nothing says %q:\n%s", want, person)
		}
	}
	if len(person.actions) > 0 {
		t.Errorf("nothing said %q:\n%s", person.actions[0].at, person)
	}
	if files := leftoverFiles(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// An exit of the remote cluster ends the run and is named; Ctrl-C during the start is no failure.
func TestTheRemoteClusterEnds(t *testing.T) {
	person := &scriptedUser{}
	var far *lab
	opts := remoteOptions(t, person)
	person.actions = []userAction{{"logs  ", func() { far.controlPlane.KillUnexpectedly() }}}
	err := runInFolder(t.Context(), Options{Out: person, programFolder: opts.programFolder, emulatorPath: opts.emulatorPath}, func(r *run) error {
		all := newRemote(r, opts)
		far = all.target
		return all.runUntilDone(t.Context())
	})
	end, ok := errors.AsType[*process.UnexpectedExit](err)
	if !ok || filepath.Base(filepath.Dir(end.Process.Log)) != "remote" || !strings.Contains(person.String(), "FAILED  kubelab ended by itself (signal: killed)") {
		t.Errorf("%v\n%s", err, person)
	}

	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer interrupt()
	if err := Remote(ctx, remoteOptions(t, io.Discard)); err != nil {
		t.Error(err)
	}
	if files := leftoverFiles(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestInvalidRemoteOptions(t *testing.T) {
	fine := badlink.Network{BytesPerSecond: 5000}
	for _, row := range []struct {
		RemoteOptions
		wantText string
	}{
		{RemoteOptions{Network: fine, Away: -time.Second}, "--away -1s: give 0s to 1h0m0s"},
		{RemoteOptions{Network: fine, Away: 2 * time.Hour}, "--away 2h0m0s"},
		{RemoteOptions{Network: badlink.Network{BytesPerSecond: 99}}, "--bytes-per-second 99: give 100 to 100000000"},
		{RemoteOptions{Network: badlink.Network{BytesPerSecond: 5000, ResetPercent: 101}}, "--reset-percent 101: give 0 to 100"},
		{RemoteOptions{Network: badlink.Network{BytesPerSecond: 5000, ResetPercent: -1}}, "--reset-percent -1"},
	} {
		if err := Remote(t.Context(), row.RemoteOptions); err == nil || !strings.Contains(err.Error(), row.wantText) {
			t.Errorf("%v, want %q", err, row.wantText)
		}
	}
}

// News of a Provision is printed once and short.
func TestProvisionUpdates(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(now.Add(d))) }
	failed := func(n int64, message string) *v1alpha1.ProvisionAttempt {
		return &v1alpha1.ProvisionAttempt{Number: n, Result: "Failed", Step: "operators", Message: message}
	}
	next := new(metav1.NewTime(now.Add(3900 * time.Millisecond)))
	var of reportedState
	for _, row := range []struct {
		v1alpha1.ProvisionStatus
		text string
		textStyle
	}{
		{v1alpha1.ProvisionStatus{}, "", plainText},
		{v1alpha1.ProvisionStatus{State: "Running", AttemptNumber: 1, StartedAt: at(-time.Second)}, "", plainText},
		{v1alpha1.ProvisionStatus{State: "Running", AttemptNumber: 1, StartedAt: at(-3 * time.Second)}, "attempt 1 is under way", dimText},
		{v1alpha1.ProvisionStatus{State: "Running", AttemptNumber: 1, StartedAt: at(-4 * time.Second)}, "", plainText},
		{v1alpha1.ProvisionStatus{State: "Waiting", WaitingSince: at(0), NextAttemptAt: next, LastAttempt: failed(1, "Namespace a: Get: connection reset - error from a previous attempt: dial: refused; not begun for it: ready")},
			"attempt 1 has failed, step operators: connection reset; the next follows after 3s", yellowText},
		{v1alpha1.ProvisionStatus{State: "Waiting", WaitingSince: at(0), NextAttemptAt: next, LastAttempt: failed(2, "dial tcp: connection reset")},
			"attempt 2 has failed, step operators: as before; the next follows after 3s", yellowText},
		{v1alpha1.ProvisionStatus{State: "Cancelled", LastAttempt: failed(2, "dial tcp: connection reset")}, "the attempts to come are cancelled", redText},
		{v1alpha1.ProvisionStatus{State: "Failed", LastAttempt: failed(3, "away")}, "attempt 3 has failed, step operators: away; no other follows", redText},
		{v1alpha1.ProvisionStatus{State: "Succeeded", LastAttempt: &v1alpha1.ProvisionAttempt{Number: 4}}, "attempt 4 has succeeded, all steps are done", greenText},
		{v1alpha1.ProvisionStatus{State: "Succeeded", LastAttempt: &v1alpha1.ProvisionAttempt{Number: 4}}, "", plainText},
	} {
		if text, c := of.nextUpdate(&v1alpha1.Provision{Status: row.ProvisionStatus}, now); text != row.text || c != row.textStyle {
			t.Errorf("%+v: %q in %q, want %q in %q", row.ProvisionStatus, text, c, row.text, row.textStyle)
		}
	}
}
