// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// The limit of azure.json applies to load balancers that Weir manages, and Azure's to others and to the security group.
func TestLimits(t *testing.T) {
	a := &Azure{}
	a.Config.MaximumRules, a.Config.BackendPoolType = new(100), "nodeIP"
	a.Settings.Configurations = []service.Configuration{{Name: "kubernetes"}}
	if got := a.checkLimits(); got[0].Result != Unknown {
		t.Errorf("%+v", got)
	}
	balancer := func(name string, rules, frontends int) lb.LoadBalancer {
		return lb.LoadBalancer{ID: lb.LoadBalancerID{Name: name}, Etag: "1", Rules: make([]lb.Rule, rules), Frontends: make([]lb.Frontend, frontends)}
	}
	for _, tt := range []struct {
		rules, frontends, securityRules int
		want                            string
	}{
		{79, 479, 799, `All is well: 1 check.

OK        limits   19 limits, of which less than 80 % is used
`},
		{80, 480, 800, `1 check: 0 fail, 1 warn, 0 not known.

WARN      limits
          kubernetes has 80 of 100 rules, kubernetes has 480 of 600 frontends, nsg has 800 of 1000 security rules
          What helps: docs/runbooks/WeirLimitNear.md

`},
		{99, 3, 3, `1 check: 0 fail, 1 warn, 0 not known.

WARN      limits
          kubernetes has 99 of 100 rules
          What helps: docs/runbooks/WeirLimitNear.md

`},
		{80, 3, 1000, `1 check: 1 fail, 0 warn, 0 not known.

FAIL      limits
          nsg has 1000 of 1000 security rules, kubernetes has 80 of 100 rules
          What helps: docs/runbooks/WeirLimitNear.md

`},
	} {
		a.loadBalancers = []lb.LoadBalancer{balancer("kubernetes", tt.rules, tt.frontends), balancer("other", 1000, 1)}
		a.group = lb.SecurityGroup{ID: lb.ResourceID{Name: "nsg"}, Etag: "1", Rules: make([]lb.SecurityRule, tt.securityRules)}
		var r Report
		r.Checks = a.checkLimits()
		r.Checks[0].Name = "limits"
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil || b.String() != tt.want {
			t.Errorf("%d rules: %v\n%swant\n%s", tt.rules, err, b.String(), tt.want)
		}
	}
}
