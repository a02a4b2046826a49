// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/apifault"
)

// faulty is a Service web on one node and a controller.
type faulty struct {
	*lab
	azure *apifault.Network
	weir  *program
}

// operatorFaults are faults that operators meet: their cause, and the problem, object and remedy that
// weir status must show.
var operatorFaults = []struct {
	name   string
	lacks  string // an action missing in the Azure role
	occurs func(f *faulty)
	code   int // of weir status; 0: OK, 3: problem
	says   []string
}{
	{name: "Azure throttles", occurs: func(f *faulty) {
		f.must(f.emulator.SetFaults(`rules: [{match: {kind: put}, action: {status: 429, code: TooManyRequests, message: "The limit of writes is exceeded.", headers: {Retry-After: "600"}}}]`))
		f.move("web", f.node("n2", "10.0.0.2"))
	}, code: 3, says: []string{"429 TooManyRequests", "weir calls", "backendpool", "Service web"}},
	{name: "the role lacks an action", lacks: "Microsoft.Network/loadBalancers/backendAddressPools/write", occurs: func(*faulty) {},
		code: 3, says: []string{"403 AuthorizationFailed", "backendAddressPools/write", "config/azure-role.json", "Service web"}},
	{name: "a probe that is none", occurs: func(f *faulty) {
		f.annotated("shop", "azure-load-balancer-health-probe-interval", "often")
	}, code: 3, says: []string{"/shop", "health-probe-interval", `"often"`}},
	{name: "another client writes there", occurs: func(f *faulty) { f.fightMembers("web") },
		code: 3, says: []string{"Contested", "find the other client that writes", "/web"}},
	{name: "a node has no address", occurs: func(f *faulty) {
		bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-bare"}}
		f.must(f.cluster.Create(f.t.Context(), bare))
		f.move("web", bare.Name)
	}, code: 3, says: []string{"NoNodeLeft", "-bare", "InternalIP", "/web"}},
	{name: "a restriction without effect", occurs: func(f *faulty) {
		f.createLoadBalancerService("shop", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
	}, code: 3, says: []string{"/shop", "loadBalancerSourceRanges", "securityGroupName", "Weir enforces no restriction"}},
	{name: "an annotation is refused", occurs: func(f *faulty) {
		f.annotated("shop", "azure-load-balancer-tcp-idle-timeout", "4 minutes")
	}, code: 3, says: []string{"/shop", "tcp-idle-timeout", `"4 minutes"`}},
	{name: "Azure is out of reach", occurs: func(f *faulty) {
		f.azure.RefuseConnections()
		f.move("web", f.node("n2", "10.0.0.2"))
	}, code: 3, says: []string{"connection refused", "Service web"}},
	{name: "the pool is gone", occurs: func(f *faulty) {
		f.must(f.emulator.Put(f.loadBalancer(), []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"theirs"}],"backendAddressPools":[]}}`)))
		f.move("web", f.node("n2", "10.0.0.2"))
	}, code: 3, says: []string{"PoolNotFound", "create the pool in Azure", "/web"}},
	{name: "a colleague has paused it", occurs: func(f *faulty) {
		if code, text := f.runCommand("pause", "web", "--for", "1h", "--why", "the database moves"); code != 0 {
			f.t.Fatal(text)
		}
		f.move("web", f.node("n2", "10.0.0.2"))
	}, says: []string{"Paused: 1", "the database moves", "until ", "weir resume", "/web"}},
	{name: "nobody leads", occurs: func(f *faulty) { f.weir.Kill() },
		code: 3, says: []string{"No process of Weir leads", "see why it does not run"}},
}

func (f *faulty) annotated(service, annotation, value string) {
	f.createLoadBalancerService(service, func(s *corev1.Service) { s.Annotations["service.beta.kubernetes.io/"+annotation] = value })
}

// fightMembers removes the pool's members as another client until the test ends.
func (f *faulty) fightMembers(pool string) {
	ctx, end := context.WithCancel(f.t.Context())
	var fight sync.WaitGroup
	fight.Go(func() {
		for every := time.Tick(5 * time.Second); ; {
			f.pool(pool, "10.9.9.9")
			select {
			case <-every:
			case <-ctx.Done():
				return
			}
		}
	})
	f.t.Cleanup(func() { end(); fight.Wait() })
}

// weir status alone shows problem, object and remedy of each fault.
func TestStatusReportsProblems(t *testing.T) {
	runParallel(t)
	for _, tt := range operatorFaults {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := armemu.Options{}
			if tt.lacks != "" {
				opts.Role = &armemu.Role{Actions: []string{"*"}, NotActions: []string{tt.lacks}}
			}
			l := newLab(t, opts)
			f := &faulty{lab: l, azure: l.behindANetwork()}
			f.write("azure.json", fmt.Sprintf(`{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","location":"eastus",
				"loadBalancerBackendPoolUpdateIntervalInSeconds":2,"loadBalancerBackendPoolDriftRepairIntervalInSeconds":%d}`, int(drift.Seconds())))
			f.pool("web")
			f.service("web", f.node("n1", "10.0.0.1"))
			f.weir = f.controller("--cluster-name", f.namespace)
			if tt.lacks == "" {
				f.becomes("web", "10.0.0.1")
			}
			tt.occurs(f)
			f.expectStatus(tt.code, tt.says...)
		})
	}
}

// expectStatus waits until weir status has an exit code and all parts of the output.
func (l *lab) expectStatus(code int, parts ...string) {
	l.t.Helper()
	l.eventually("weir status", func() error {
		got, text := l.runCommand("status")
		for _, part := range parts {
			if got != code || !strings.Contains(text, part) {
				return fmt.Errorf("exit code %d, want %d, and %q in\n%s", got, code, part, text)
			}
		}
		l.t.Logf("%s", text)
		return nil
	})
}
