// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Within is the timeout of one check.
const Within = 5 * time.Second

// Doctor runs the checks with the caller's own permissions.
type Doctor struct {
	// REST is the API server's address; API is a client for it.
	REST                      *rest.Config
	API                       client.Client
	Namespace, ServiceAccount string
	// Azure is nil to check only the cluster.
	Azure *Azure
}

// Examine runs all checks in order.
func (d Doctor) Examine(ctx context.Context) Report {
	r := Report{At: time.Now()}
	var answers bool
	r.take(ctx, "API server", func(ctx context.Context) (all []Check) {
		all, answers = d.apiServer(ctx)
		return all
	})
	if answers {
		for _, of := range d.definitions() {
			r.take(ctx, of.name, of.check)
		}
		for _, of := range d.rights() {
			r.take(ctx, of.name, of.check)
		}
		r.take(ctx, "state", d.state)
		r.take(ctx, "provisioner", d.provisioner)
		r.take(ctx, "bounds", d.bounds)
		r.take(ctx, "other controllers", d.others)
		r.take(ctx, "pools left to others", d.leftPools)
		r.take(ctx, "api-versions", d.versions)
	}
	if d.Azure != nil {
		for _, of := range d.Azure.checks() {
			r.take(ctx, of.name, of.check)
		}
	}
	return r
}

type named struct {
	name  string
	check func(context.Context) []Check
}

func (r *Report) take(ctx context.Context, name string, check func(context.Context) []Check) {
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	for _, c := range check(ctx) {
		if c.Name == "" {
			c.Name = name
		}
		r.Checks = append(r.Checks, c)
	}
}

func one(v Verdict, why, do string) []Check { return []Check{{Verdict: v, Why: why, Do: do}} }

func notAnswered(ctx context.Context, err error) []Check {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return one(Unknown, fmt.Sprintf("no answer within %s", Within), "retry, and check that the network allows the connection")
	}
	return one(Unknown, err.Error(), "")
}
