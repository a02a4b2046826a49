// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli"
)

// completionTimeout bounds the wait of a user after the tab key.
const completionTimeout = 3 * time.Second

const noFiles = cobra.ShellCompDirectiveNoFileComp

// listNames returns the names of objects, of the namespace of the flags if namespaced. Errors complete nothing.
func listNames(ctx context.Context, f cli.Flags, list client.ObjectList, namespaced bool, names func() []string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	api, namespace, err := f.NewClusterClient()
	if err != nil {
		return nil
	}
	var where []client.ListOption
	if namespaced {
		where = append(where, client.InNamespace(namespace))
	}
	if err := api.List(ctx, list, where...); err != nil {
		return nil
	}
	candidates := names()
	slices.Sort(candidates)
	return candidates
}

func completeNamespaces(f cli.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var list corev1.NamespaceList
		return listNames(cmd.Context(), f, &list, false, func() []string { return objectNames(list.Items) }), noFiles
	}
}

func objectNames[T any, P interface {
	*T
	client.Object
}](items []T) []string {
	names := make([]string, 0, len(items))
	for i := range items {
		names = append(names, P(&items[i]).GetName())
	}
	return names
}

// listServices returns the Services of type LoadBalancer, each after prefix.
func listServices(ctx context.Context, f cli.Flags, prefix string) []string {
	var list corev1.ServiceList
	return listNames(ctx, f, &list, true, func() (names []string) {
		for _, s := range list.Items {
			if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
				names = append(names, prefix+s.Name)
			}
		}
		return names
	})
}

func listPools(ctx context.Context, f cli.Flags) []string {
	var list v1alpha1.BackendPoolList
	return listNames(ctx, f, &list, true, func() []string { return objectNames(list.Items) })
}

// completePools completes names of BackendPools, and service/NAME.
func completePools(f cli.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		pools := append(listPools(cmd.Context(), f), listServices(cmd.Context(), f, "service/")...)
		return slices.DeleteFunc(pools, func(name string) bool { return slices.Contains(args, name) }), noFiles
	}
}

func completeProvisions(f cli.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, noFiles
		}
		var list v1alpha1.ProvisionList
		return listNames(cmd.Context(), f, &list, true, func() []string { return objectNames(list.Items) }), noFiles
	}
}

// completeExplained completes the kind, then the name.
func completeExplained(f cli.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return []string{"gateway", "node", "pool", "service"}, noFiles
		case len(args) > 1:
			return nil, noFiles
		}
		switch explainedKind(args[0]) {
		case kindService:
			return listServices(cmd.Context(), f, ""), noFiles
		case kindGateway:
			var list gatewayv1.GatewayList
			return listNames(cmd.Context(), f, &list, true, func() []string { return objectNames(list.Items) }), noFiles
		case kindPool:
			return listPools(cmd.Context(), f), noFiles
		case kindNode:
			var list corev1.NodeList
			return listNames(cmd.Context(), f, &list, false, func() []string { return objectNames(list.Items) }), noFiles
		}
		return nil, noFiles
	}
}

// completeServiceArg completes one Service.
func completeServiceArg(f cli.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, noFiles
		}
		return listServices(cmd.Context(), f, ""), noFiles
	}
}

// completeNamespaced completes NAMESPACE/NAME of all namespaces.
func completeNamespaced(f cli.Flags, newList func() (client.ObjectList, func() []client.Object)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		list, items := newList()
		return listNames(cmd.Context(), f, list, false, func() (names []string) {
			for _, o := range items() {
				names = append(names, o.GetNamespace()+"/"+o.GetName())
			}
			return names
		}), noFiles
	}
}

func newServiceList() (client.ObjectList, func() []client.Object) {
	var list corev1.ServiceList
	return &list, func() (objects []client.Object) {
		for i := range list.Items {
			if list.Items[i].Spec.Type == corev1.ServiceTypeLoadBalancer {
				objects = append(objects, &list.Items[i])
			}
		}
		return objects
	}
}

func newPoolList() (client.ObjectList, func() []client.Object) {
	var list v1alpha1.BackendPoolList
	return &list, func() (objects []client.Object) {
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		return objects
	}
}

func newServiceAccountList() (client.ObjectList, func() []client.Object) {
	var list corev1.ServiceAccountList
	return &list, func() (objects []client.Object) {
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		return objects
	}
}

func kubeconfigContexts(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Contexts)) }
func kubeconfigClusters(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Clusters)) }
func kubeconfigUsers(c *clientcmdapi.Config) []string    { return slices.Sorted(maps.Keys(c.AuthInfos)) }

func completeKubeconfig(f cli.Flags, names func(*clientcmdapi.Config) []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		raw, err := f.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, noFiles
		}
		return names(&raw), noFiles
	}
}
