// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/lb"
)

func withMember(p v1alpha1.BackendPool) v1alpha1.BackendPool {
	p.Status.WrittenAddresses = []string{"10.0.0.1"}
	return p
}

// A Service without a member that is up is a problem, also in the pool of all nodes. A pool without probes is skipped,
// and any other failure ends the reads.
func TestServicesThatAreDown(t *testing.T) {
	up, down := lb.MemberHealth{Up: true, Reason: "Up_Probe_Success"}, lb.MemberHealth{Reason: "Down_Probe_HttpNoResponse"}
	rule := func(name string, members ...lb.MemberHealth) []app.RuleHealth {
		return []app.RuleHealth{{Rule: name, Probe: "p", Members: members}}
	}
	nodes := withMember(pool("nodes", v1alpha1.ReasonInSync, "in sync with 1 node", time.Hour))
	nodes.Spec.ServiceRef = nil
	var reads []string
	seen := Snapshot{At: noon, Leader: leads,
		Services: []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api", UID: types.UID("0f-1")}}},
		Pools: []v1alpha1.BackendPool{
			withMember(pool("web", v1alpha1.ReasonInSync, "in sync with 1 node", time.Hour)), pool("empty", v1alpha1.ReasonInSync, "in sync with no nodes", time.Hour),
			withMember(pool("no-probe", v1alpha1.ReasonInSync, "in sync with 1 node", time.Hour)), withMember(pool("ok", v1alpha1.ReasonInSync, "in sync with 1 node", time.Hour)),
			nodes, withMember(pool("fails", v1alpha1.ReasonInSync, "in sync with 1 node", time.Hour)), withMember(pool("later", v1alpha1.ReasonInSync, "in sync with 1 node", time.Hour)),
		},
	}
	seen.ReadHealth(t.Context(), func(_ context.Context, namespace, name string) ([]app.RuleHealth, error) {
		reads = append(reads, name)
		switch name {
		case "web":
			return rule("r", down, down), nil
		case "no-probe":
			return nil, &app.PoolHealthError{Message: "no rule has a probe"}
		case "nodes":
			return rule("a0f1-TCP-80", down), nil
		case "fails":
			return nil, errors.New("no\nright")
		}
		return rule("r", down, up), nil
	})
	if got := strings.Join(reads, " "); got != "web no-probe ok nodes fails" {
		t.Errorf("read %s", got)
	}
	r := NewReport(seen)
	if len(r.Causes) != 1 || r.Causes[0].Name != AllDown || r.Pools.Wrong != 2 || r.InSync {
		t.Fatalf("%+v", r)
	}
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"backendpool shop/web     AllDown      Service web\n", "backendpool shop/nodes   AllDown      Service api\n", "no response (Down_Probe_HttpNoResponse)", "\nAzure's probes: those of 3 BackendPools were read; no right\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestReadsOfHealthAreBounded(t *testing.T) {
	var seen Snapshot
	for i := range maxHealthPools + 5 {
		seen.Pools = append(seen.Pools, withMember(pool(fmt.Sprint(i), v1alpha1.ReasonInSync, "", time.Hour)))
	}
	seen.ReadHealth(t.Context(), func(context.Context, string, string) ([]app.RuleHealth, error) { return nil, nil })
	if seen.Health.Read != maxHealthPools || seen.Health.Error == "" {
		t.Errorf("%+v", seen.Health)
	}
}
