// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
)

// A leader is stopped (SIGSTOP) during an attempt and continues after another one took over. It
// writes nothing to Azure or the cluster, does not take the lease, and exits; the new leader
// completes its work.
func TestAFrozenLeaderWritesNothingOnceAnotherLeads(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web", "10.9.9.9")
	n1, n2, n3, n4 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2"), l.node("n3", "10.0.0.3"), l.node("n4", "10.0.0.4")
	l.service("web", n1)
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","loadBalancerBackendPoolUpdateIntervalInSeconds":1}`)
	a, b := newTap(l), newTap(l)
	frozen := a.controller("a")
	l.becomes("web", "10.0.0.1", "10.9.9.9")

	read := a.holdNextRead()
	l.move("web", n2)
	select {
	case <-read.waits:
	case <-time.After(3 * time.Minute):
		t.Fatal("the leader does not look at the pool")
	}
	l.must(frozen.Signal(syscall.SIGSTOP))
	close(read.release) // the response is there when it continues

	b.controller("b")
	l.becomes("web", "10.0.0.2", "10.9.9.9")
	l.move("web", n3)
	l.becomes("web", "10.0.0.3", "10.9.9.9")
	leads := l.leader()

	ended := make(chan error, 1)
	woken := time.Now()
	l.must(frozen.Signal(syscall.SIGCONT))
	go func() { ended <- frozen.Wait() }()
	limit := time.NewTimer(3 * time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	over := false
	for i := 0; !over; i++ { // keep work pending for the process
		l.move("web", []string{n4, n1, n2}[i%3])
		select {
		case err := <-ended:
			over = true
			t.Logf("it ended after %s: %v: %s", time.Since(woken).Round(time.Millisecond), err, frozen.lastWord())
			if err == nil || !strings.Contains(frozen.ReadOutput(), "the lead is lost") {
				t.Error("it does not say why it ends")
			}
		case <-limit.C:
			over = true
			t.Error("it does not end")
		case <-tick.C:
		}
	}
	l.move("web", n4)
	l.becomes("web", "10.0.0.4", "10.9.9.9")

	if late := a.changesAfter(b.firstWrite(t), &a.toAzure); len(late) > 0 {
		t.Errorf("it wrote to Azure after another did:\n%s", strings.Join(late, "\n"))
	}
	late := slices.DeleteFunc(a.changesAfter(woken, &a.toAPI), func(c string) bool { return strings.HasSuffix(c, "/leases/weir-controller") })
	if len(late) > 0 {
		t.Errorf("it wrote to the cluster after it woke:\n%s", strings.Join(late, "\n"))
	}
	if now := l.leader(); now != leads {
		t.Errorf("%q leads, and %q did when it woke", now, leads)
	}
	l.eventually("the record", func() error {
		var pool v1alpha1.BackendPool
		if err := l.cluster.Get(t.Context(), key(l.namespace, "web"), &pool); err != nil {
			return err
		}
		if got := pool.Status.WrittenAddresses; !slices.Equal(got, []string{"10.0.0.4"}) {
			return fmt.Errorf("it names %v", got)
		}
		return nil
	})
	if got := l.members("web"); !slices.Equal(got, []string{"10.0.0.4", "10.9.9.9"}) {
		t.Errorf("the pool holds %v", got)
	}
}

// lastWord returns the last line of the log.
func (p *program) lastWord() string {
	lines := strings.Split(strings.TrimSpace(p.ReadOutput()), "\n")
	return lines[len(lines)-1]
}

// leader returns the holder of the leader lease.
func (l *lab) leader() string {
	l.t.Helper()
	var stands coordinationv1.Lease
	l.must(l.cluster.Get(l.t.Context(), key("weir-system", "weir-controller"), &stands))
	return *stands.Spec.HolderIdentity
}
