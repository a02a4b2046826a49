// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
)

// checkAPIVersions checks whether Azure rejects writes because another tool set a property with a newer api-version
// than Weir can use.
func (d Doctor) checkAPIVersions(ctx context.Context) []Check {
	var pools v1alpha1.BackendPoolList
	var services corev1.ServiceList
	err := d.API.List(ctx, &pools)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		err = nil // Services have conditions even without BackendPools
	}
	if err == nil {
		err = d.API.List(ctx, &services)
	}
	switch {
	case apierrors.IsForbidden(err):
		return singleResult(Unknown, "you may not list BackendPools and Services of all namespaces", "run it with the rights of a cluster administrator")
	case err != nil:
		return noResponse(ctx, err)
	}
	var rejected []string
	for _, p := range pools.Items {
		if isRejected(p.Status.Conditions) {
			rejected = append(rejected, "BackendPool "+p.Namespace+"/"+p.Name)
		}
	}
	for _, s := range services.Items {
		if isRejected(s.Status.Conditions) {
			rejected = append(rejected, "Service "+s.Namespace+"/"+s.Name)
		}
	}
	if slices.Sort(rejected); len(rejected) > 0 {
		return singleResult(Warn, "another tool has set a property in Azure with a newer api-version than Weir can use, and Azure rejects Weir's writes: "+humanize.FormatList(rejected, 5),
			`docs/guide/troubleshooting.md, "Azure rejects the api-version", has the steps`)
	}
	return singleResult(OK, "Azure rejects no write because of its api-version", "")
}

func isRejected(conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, armerror.CodeOldAPIVersion) })
}
