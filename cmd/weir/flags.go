// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir.dev/weir/internal/cli"
)

// outputFormat is the value of -o.
type outputFormat string

// Values of -o.
const (
	outputText outputFormat = "text"
	outputJSON outputFormat = "json"
)

// Set implements pflag.Value.
func (o *outputFormat) Set(text string) error {
	if text != string(outputText) && text != string(outputJSON) {
		return errors.New("want text or json")
	}
	*o = outputFormat(text)
	return nil
}

// String implements pflag.Value.
func (o *outputFormat) String() string { return string(*o) }

// Type implements pflag.Value.
func (*outputFormat) Type() string { return "format" }

func (o *outputFormat) isJSON() bool { return *o == outputJSON }

// addOutputFlag adds -o to the flags of a command, which are its own or those of its subcommands.
func addOutputFlag(cmd *cobra.Command, f *pflag.FlagSet, o *outputFormat, usage string) {
	*o = outputText
	f.VarP(o, "output", "o", usage)
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{string(outputText), string(outputJSON)}, cobra.ShellCompDirectiveNoFileComp))
}

// flagError adds the help command to an error in a flag.
func flagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok && invalid.GetFlag().Name == "output" {
		return fmt.Errorf("-o %q: %w", invalid.GetValue(), errors.Unwrap(invalid))
	}
	return fmt.Errorf("%w: run %s --help", err, cmd.CommandPath())
}

// connectionAnnotation marks kubectl's connection flags, which help lists by name only.
const connectionAnnotation = "weir.dev/connection"

// shownFlags are the connection flags that help describes.
var shownFlags = map[string]string{
	"kubeconfig": "kubeconfig file; empty: $KUBECONFIG or ~/.kube/config, else the pod's service account",
	"context":    "context of the kubeconfig; empty: the current one",
	"namespace":  "namespace; empty: that of the context",
}

// addConnectionFlags adds kubectl's connection flags, with -n unless f has no namespace. usage describes -n; empty is the
// default text.
func addConnectionFlags(cmd *cobra.Command, flags *pflag.FlagSet, f cli.Flags, usage string) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	f.AddFlags(set)
	for _, name := range []string{"namespace", "context", "kubeconfig"} {
		if flag := set.Lookup(name); flag != nil {
			flag.Usage = shownFlags[name]
			if name == "namespace" && usage != "" {
				flag.Usage = usage
			}
			flags.AddFlag(flag)
		}
	}
	set.VisitAll(func(flag *pflag.Flag) {
		if shownFlags[flag.Name] == "" {
			flag.Annotations = map[string][]string{connectionAnnotation: {"true"}}
			flags.AddFlag(flag)
		}
	})
	if f.Namespace != nil {
		completeFlag(cmd, "namespace", completeNamespaces(f))
	}
	completeFlag(cmd, "context", completeKubeconfig(f, kubeconfigContexts))
	completeFlag(cmd, "cluster", completeKubeconfig(f, kubeconfigClusters))
	completeFlag(cmd, "user", completeKubeconfig(f, kubeconfigUsers))
}

func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag does not exist
	}
}

// describedFlags returns the flags without the connection flags that help lists by name only.
func describedFlags(flags *pflag.FlagSet) string {
	described := pflag.NewFlagSet("", pflag.ContinueOnError)
	described.SortFlags = flags.SortFlags
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[connectionAnnotation] == nil {
			described.AddFlag(f)
		}
	})
	return strings.TrimRight(described.FlagUsages(), "\n")
}

// connectionFlagNames returns the connection flags of a command that help lists by name only, in lines of 100 characters.
func connectionFlagNames(cmd *cobra.Command) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[connectionAnnotation] != nil {
			names = append(names, "--"+f.Name)
		}
	})
	slices.Sort(names)
	var b strings.Builder
	width := 0
	for i, name := range names {
		switch {
		case i == 0:
			b.WriteString("  ")
		case width+len(name) > 100:
			b.WriteString(",\n  ")
			width = 0
		default:
			b.WriteString(", ")
		}
		b.WriteString(name)
		width += len(name) + 2
	}
	return b.String()
}

// useHelpTemplate has help list most connection flags by name only: there are many, and kubectl's are known.
func useHelpTemplate(root *cobra.Command) {
	cobra.AddTemplateFunc("describedFlags", describedFlags)
	cobra.AddTemplateFunc("connectionFlagNames", connectionFlagNames)
	template := root.UsageTemplate()
	template = strings.ReplaceAll(template, ".LocalFlags.FlagUsages | trimTrailingWhitespaces", "describedFlags .LocalFlags")
	template = strings.ReplaceAll(template, ".InheritedFlags.FlagUsages | trimTrailingWhitespaces", "describedFlags .InheritedFlags")
	root.SetUsageTemplate(template + `{{with connectionFlagNames .}}
Connection flags, described by "kubectl options":
{{.}}
{{end}}`)
}
