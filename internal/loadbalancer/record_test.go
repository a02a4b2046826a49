// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// A user may edit a Service's record while no process runs. Deletion still finds everything, because it reads
// Azure.
func TestAnEditedRecordHidesNothingFromADeletion(t *testing.T) {
	several := func(set *loadbalancer.Settings) {
		set.Configurations = []service.Configuration{configuration(clusterName), configuration("lb-2")}
	}
	for _, tt := range []struct {
		about  string
		adjust func(*loadbalancer.Settings)
		before string
		record []string
	}{
		{about: "the twin", adjust: func(*loadbalancer.Settings) {},
			before: `shop/a: {ports: 80, local: yes}`, record: []string{"kubernetes-internal"}},
		{about: "one of nobody's", adjust: func(*loadbalancer.Settings) {},
			before: `shop/a: {ports: 80, azure-load-balancer-internal: "true"}`, record: []string{"theirs"}},
		{about: "another of several", adjust: several,
			before: `shop/a: {ports: 80, azure-load-balancer-configurations: lb-2}`, record: []string{"kubernetes"}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(tt.adjust)
				defer func() { s.close() }()
				s.applyAll(tt.before)
				s.settle(time.Hour)
				s.stop()
				s.services["shop/a"].places = tt.record
				s.remove("shop/a")
				s.launch()
				s.kickAll()
				s.settle(time.Hour)
				if got := s.cloud().spell(); got != "nothing\n" {
					t.Errorf("left:\n%s", got)
				}
			})
		})
	}
}
