// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/controlplane"
)

// With the role edit in a namespace, a user can pause its pools and no others. Azure is not written
// while paused, through endpoint changes and restarts; at the end of the pause the pool gets in
// sync by itself.
func TestATenantPausesItsPool(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.kubectl("apply", "--server-side", "-k", "../../config/edit")
	l.kubectl("create", "serviceaccount", "editor", "-n", l.namespace)
	for _, role := range []string{"system:aggregate-to-view", "weir-view", "weir-edit"} { // no aggregation controller runs here
		l.kubectl("create", "rolebinding", strings.TrimPrefix(role, "system:"), "-n", l.namespace, "--clusterrole", role, "--serviceaccount", l.namespace+":editor")
	}
	editor := filepath.Join(l.dir, "editor")
	l.must(controlplane.WriteKubeconfig(editor, l.cluster.rest, "system:serviceaccount:"+l.namespace+":editor"))
	asks := func(command ...string) string {
		out, _ := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), append(command, "--kubeconfig", editor)...).CombinedOutput()
		return string(out)
	}
	message := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("want %q in\n%s", part, text)
			}
		}
	}
	state := func(want string) {
		t.Helper()
		l.eventually("the state "+want, func() error {
			var report struct {
				Paused []struct{ Name, By, Why string }
			}
			_, text := l.runCommand("status", "-o", "json")
			if err := json.Unmarshal([]byte(text), &report); err != nil {
				return fmt.Errorf("%w: %s", err, text)
			}
			if got := fmt.Sprint(report.Paused); got != want {
				return fmt.Errorf("paused are %s", got)
			}
			return nil
		})
	}
	l.pool("web")
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.service("web", n1)
	first := l.controller("--leader-elect=false")
	l.becomes("web", "10.0.0.1")

	message(asks("pause", "-n", l.namespace, "web", "--dry-run"), "would be paused without an end")
	message(asks("pause", "-n", "weir-system", "--all"), "forbidden")
	message(asks("pause", "-A", "--all"), "forbidden")
	by := "system:serviceaccount:" + l.namespace + ":editor"
	message(asks("pause", "-n", l.namespace, "service/web", "--for", "1h", "--why", "a move\x1b[2J"), "backendpool "+l.namespace+"/web is paused until ")
	state("[{web " + by + " a move\x1b[2J}]")
	_, text := l.runCommand("status")
	if message(text, "Nothing is wrong: 1 BackendPool, 0 Services in namespace "+l.namespace+". Paused: 1. It is unknown whether Weir runs", "by "+by, "a move [2J"); strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	message(asks("explain", "pool", "web", "-n", l.namespace), "Paused for", "by itself", "weir resume -n "+l.namespace+" web")
	written := len(l.emulator.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete, armemu.KindPatch)))

	l.move("web", n1, n2)
	first.Kill()
	l.expectMetric(l.controller("--leader-elect=false"), `weir_backendpools{state="Paused"} 1`)
	message(asks("pause", "-n", l.namespace, "web", "--for", "5s"), "is paused until ")
	var p v1alpha1.BackendPool
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "web"), &p))
	l.becomes("web", "10.0.0.1", "10.0.0.2")
	writes := l.emulator.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete, armemu.KindPatch))
	if at := writes[written].Time; at.Before(p.Spec.Pause.Until.Time) {
		t.Errorf("it went on at %s, and was paused until %s", at, p.Spec.Pause.Until)
	}
	state("[]")
	l.eventually("the events", func() error {
		var events corev1.EventList
		if err := l.cluster.List(t.Context(), &events, client.InNamespace(l.namespace)); err != nil {
			return err
		}
		output := map[string]int32{}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == "BackendPool" {
				output[e.Reason] += max(1, e.Count)
			}
		}
		if output["Paused"] != 1 || output["Resumed"] != 1 {
			return fmt.Errorf("%v", output)
		}
		return nil
	})

	message(asks("pause", "-n", l.namespace, "web"), "without an end")
	state("[{web " + by + " }]")
	l.move("web", n2)
	message(asks("resume", "-n", l.namespace, "--all"), "is resumed: changes since the pause are written now")
	l.becomes("web", "10.0.0.2")
	p = v1alpha1.BackendPool{}
	if l.must(l.cluster.Get(t.Context(), key(l.namespace, "web"), &p)); p.Spec.Paused || p.Spec.Pause != nil {
		t.Errorf("%+v", p.Spec)
	}
	// weir pause relies on this for older CRDs: an unknown field is rejected.
	err := l.cluster.Patch(t.Context(), &p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true,"pauseLater":{"until":"x"}}}`)), client.FieldValidation("Strict"))
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.pauseLater"`) {
		t.Errorf("an unknown field: %v", err)
	}
}
