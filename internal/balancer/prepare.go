// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"

	"weir.dev/weir/internal/publicip"
)

// prepare has the public IPs of the jobs ready, and returns the jobs that have theirs. The others
// have failed. A write that somebody else overtook is tried once more.
func (l *loadBalancer) prepare(ctx context.Context, jobs []*job) (*publicip.Round, []*job) {
	ips := l.publicIPs(ctx, jobs)
	if publicip.Overtaken(requests(jobs)) {
		ips = l.publicIPs(ctx, jobs)
		l.report.overtaken(resourcePublicIP)(!publicip.Overtaken(requests(jobs)))
	}
	for _, j := range jobs {
		if j.ips.Err != nil {
			l.report.fail(ctx, j, j.ips.Err)
		}
	}
	return ips, slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.ips.Err != nil })
}

// publicIPs picks the public IPs of all jobs, and makes those true that they need now.
func (l *loadBalancer) publicIPs(ctx context.Context, jobs []*job) *publicip.Round {
	ctx, cancel := context.WithTimeout(ctx, publicip.Deadline)
	defer cancel()
	for _, j := range jobs {
		j.ips.Leaves = j.leaves()
	}
	ips := l.ips.Begin(ctx, l.id, requests(jobs))
	for _, j := range jobs {
		if j.ips.Leaves && !j.leaves() {
			j.steps = append([]step{{on: l.id, leaves: true}}, j.steps...)
		}
		j.ips.Moves = j.moves()
	}
	l.endLosing(ctx, jobs, ips)
	ips.Write(ctx)
	return ips
}

// requests are what jobs want of public IPs.
func requests(jobs []*job) []*publicip.Request {
	all := make([]*publicip.Request, len(jobs))
	for i, j := range jobs {
		all[i] = j.ips
	}
	return all
}
