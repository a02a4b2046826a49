// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/config"
	"weir.dev/weir/internal/humanize"
)

const (
	applyAdmission = "kubectl apply --server-side -k config/admission, with the namespace of Weir in its expressions"
	notInForce     = ", so that a BackendPool that its namespace may not have is created, and Weir rejects it"
)

// shippedPolicies returns the names of the policies in config/admission. Weir has no admission webhook.
func shippedPolicies() (names []string, err error) {
	content, err := config.Admission.ReadFile("admission/policy.yaml")
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var p admissionregistrationv1.ValidatingAdmissionPolicy
		err = errors.Join(err, yaml.Unmarshal([]byte(document), &p))
		if p.Kind == "ValidatingAdmissionPolicy" {
			names = append(names, p.Name)
		}
	}
	return names, err
}

func (d Doctor) checkAdmission(ctx context.Context) []Check {
	names, err := shippedPolicies()
	if err != nil {
		return singleResult(Unknown, err.Error(), "")
	}
	var bindings admissionregistrationv1.ValidatingAdmissionPolicyBindingList
	if err := d.API.List(ctx, &bindings); err != nil {
		return admissionError(ctx, err)
	}
	var problems []string
	for _, name := range names {
		var p admissionregistrationv1.ValidatingAdmissionPolicy
		err := d.API.Get(ctx, client.ObjectKey{Name: name}, &p)
		switch {
		case apierrors.IsNotFound(err):
			problems = append(problems, "ValidatingAdmissionPolicy "+name+" is not there"+notInForce)
		case err != nil:
			return admissionError(ctx, err)
		default:
			problems = append(problems, d.policyProblems(&p, bindings.Items)...)
		}
	}
	if len(problems) > 0 {
		return singleResult(Warn, humanize.FormatList(problems, 5), applyAdmission)
	}
	return singleResult(OK, "in force: "+humanize.FormatList(names, 5), "")
}

func admissionError(ctx context.Context, err error) []Check {
	if apierrors.IsForbidden(err) {
		return singleResult(Unknown, "you may not list ValidatingAdmissionPolicies and their bindings", "run it with the rights of a cluster administrator")
	}
	return noResponse(ctx, err)
}

func (d Doctor) policyProblems(p *admissionregistrationv1.ValidatingAdmissionPolicy, bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding) (problems []string) {
	if !slices.ContainsFunc(bindings, func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
		return b.Spec.PolicyName == p.Name && slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny)
	}) {
		problems = append(problems, fmt.Sprintf("ValidatingAdmissionPolicy %s has no binding with the action Deny%s", p.Name, notInForce))
	}
	account := fmt.Sprintf("'system:serviceaccount:%s:%s'", d.Namespace, d.ServiceAccount)
	if d.outside == "" && !slices.ContainsFunc(p.Spec.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
		return strings.Contains(c.Expression, account)
	}) {
		problems = append(problems, fmt.Sprintf("ValidatingAdmissionPolicy %s does not exempt %s, so that it may reject BackendPools of Weir itself", p.Name, strings.Trim(account, "'")))
	}
	if t := p.Status.TypeChecking; t != nil && len(t.ExpressionWarnings) > 0 {
		problems = append(problems, fmt.Sprintf("ValidatingAdmissionPolicy %s: %s: %s", p.Name, t.ExpressionWarnings[0].FieldRef, t.ExpressionWarnings[0].Warning))
	}
	return problems
}
