// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
)

// policy changes a rule in every write, like Azure Policy.
type policy struct {
	loadbalancer.Azure
	rule string
}

func (p policy) PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	b.Rules = slices.Clone(b.Rules)
	for i := range b.Rules {
		if b.Rules[i].Name == p.rule {
			b.Rules[i].IdleMinutes = 30
		}
	}
	return p.Azure.PutLoadBalancer(ctx, b)
}

// An Azure Policy that changes writes is a conflict: after some minutes the Service keeps Azure's result. Other
// Services never wait.
func TestAPolicyThatChangesEachWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.stop()
		s.wrap = func(a loadbalancer.Azure) loadbalancer.Azure { return policy{a, "a001-TCP-80"} }
		s.launch()
		defer func() { s.close() }()
		s.applyAll(`
shop/a: {ports: 80}
shop/b: {ports: 80}`)
		s.settle(time.Minute)
		output := s.harvest(false)
		if !strings.Contains(output, "shop/b has 198.18.0.") || !strings.Contains(output, "otherwise than written: rule a001-TCP-80: idleTimeoutInMinutes 30, Weir wants 4") {
			t.Errorf("at first\n%s", output)
		}
		s.settle(20 * time.Minute)
		output += s.harvest(false)
		if !strings.Contains(output, "shop/a has 198.18.0.") || !strings.Contains(output, "shop/a: contested in load balancer kubernetes") {
			t.Errorf("after some minutes\n%s", output)
		}
		output += s.looks(144, time.Minute) + s.harvest(false)
		if n := strings.Count(output, "PUT loadBalancers/"); n > 25 {
			t.Errorf("%d writes in a day\n%s", n, output)
		}
	})
}
