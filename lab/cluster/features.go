// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lb/behavior"
)

// features add steps and world options to some schedules. Each is part of one schedule in n; address
// features exclude pools of network interfaces.
var features = []struct {
	oneIn       int
	draw        func(*scheduleBuilder)
	ofAddresses bool
}{{4, addSecondLoadBalancer, false}, {4, addUnmanagedPools, true}, {4, addUserIPs, false}, {4, addEvictions, false}, {6, ignoreIfMatch, false}}

// applyFeatures draws the themes of a schedule from a separate random source, so other steps do not
// change.
func (b *scheduleBuilder) applyFeatures(ofInterfaces bool) {
	for _, t := range features {
		if b.IntN(t.oneIn) == 0 && (!ofInterfaces || !t.ofAddresses) {
			t.draw(b)
		}
	}
}

// mergeSteps inserts steps at random positions and keeps their order.
func (b *scheduleBuilder) mergeSteps(others []Step) []Step {
	var steps []Step
	for _, step := range b.steps {
		for len(others) > 0 && b.IntN(len(others)+len(b.steps)) >= len(b.steps) {
			steps, others = append(steps, others[0]), others[1:]
		}
		steps = append(steps, step)
	}
	return append(steps, others...)
}

// ignoreIfMatch is an Azure that ignores If-Match on pools. Foreign writes can be lost and requests of dead
// processes can land late, so pools are compared often.
func ignoreIfMatch(d *scheduleBuilder) {
	d.addOption(func(o *Options) { o.Behaviour.PoolIfMatch = behavior.Ignored })
	d.addConfig(func(c *config.Config) { c.DriftSeconds = new(min(*c.DriftSeconds, 600)) })
}

// userIPName returns the name of a user's public IP for one Service.
func userIPName(service string, number int) string {
	at := parseKey(service)
	return fmt.Sprintf("of-%s-%s-%d", at.Namespace, at.Name, number)
}

// addUserIPs moves Services between public IPs created by users, one of them late, and those
// created by Weir.
func addUserIPs(d *scheduleBuilder) {
	d.userIPs = true
	for _, name := range serviceNames {
		late := d.IntN(4) == 0
		for number := range 2 {
			ip := userIPName(name, number)
			makes := func(s *Stage) error { return s.CreatePublicIP(ip) }
			if late && number == 1 {
				d.last = append(d.last, Step{0, "people make public IP " + ip, makes})
				continue
			}
			d.first = append(d.first, Step{0, "people make public IP " + ip, makes})
		}
	}
	for range 6 + d.IntN(6) {
		name := pickOne(d, serviceNames...)
		ip := pickOne(d, "", userIPName(name, 0), userIPName(name, 1))
		d.addStep(func(s *Stage) error {
			return s.ChangeService(name, func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-name", ip) })
		}, "Service %s wants the address %q", name, ip)
	}
}
