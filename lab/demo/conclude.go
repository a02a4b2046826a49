// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// conclude prints the summary and returns the final error.
func (r *run) conclude(ctx context.Context, err error, took time.Duration) error {
	sum := Summary{Nodes: r.opts.Nodes, Seed: r.opts.Seed, Seconds: took.Seconds(), Steps: r.stage.steps, Crowd: r.stage.crowd, Evictions: r.stage.evictions, Published: r.stage.published, Notes: r.stage.notes}
	sum.Total, sum.Pools, sum.ARM = r.stage.observer.summarize(time.Now())
	if told := r.countEvents(ctx, &sum); err == nil {
		err = r.cause(ctx, told)
	}
	if wrong := sum.wrong(); err == nil && wrong != "" {
		err = errors.New(wrong)
	}
	if sum.OK = err == nil; !sum.OK {
		sum.Failure = err.Error()
	}
	r.printFailure(err)
	if sum.OK {
		r.print.plainly("")
		r.print.print(green, "Every pool holds what the cluster wants, and what others put there.")
		for _, note := range sum.Notes {
			r.print.plainly("Note: " + note + ".")
		}
	}
	r.print.plainly(append([]string{""}, sum.table()...)...)
	r.print.plainly("",
		"Lag is from the API's own truth changing to Azure being done with a pool that",
		"shows it, the time without a controller included; the storm's is apart.",
		fmt.Sprintf("Azure was asked for %s.", sum.ARM),
		fmt.Sprintf("Of the writes %d were of the load balancer, %d of public IPs.", sum.ARM.Balancers, sum.ARM.PublicIPs),
		fmt.Sprintf("Calls before a Retry-After was over: %d. The story took %.0f s.", sum.ARM.Early, took.Seconds()))
	if !r.opts.Stay {
		r.print.plainly("", "Try next:",
			"  make demo STAY=1   keeps all running, and prints addresses and commands to try",
			"  make demo FULL=1   adds spot evictions, and a Service with Private Link")
	}
	if r.opts.JSON {
		encoder := json.NewEncoder(r.opts.Out)
		encoder.SetIndent("", "  ")
		err = errors.Join(err, encoder.Encode(sum))
	}
	return err
}

// countEvents adds the Services' events to the summary.
func (r *run) countEvents(ctx context.Context, sum *Summary) error {
	retrying, err := r.stage.cluster.told(ctx, reasonRetrying)
	if err != nil {
		return err
	}
	failed, err := r.stage.cluster.told(ctx, reasonFailed)
	if err != nil {
		return err
	}
	sum.count(countByService(retrying), countByService(failed))
	refused, err := r.stage.cluster.told(ctx, reasonSyncFailed)
	for _, n := range countByService(refused) {
		sum.SyncFailed += n
	}
	return err
}
