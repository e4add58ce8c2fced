package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

func newServe(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the control plane (not built yet)",
		Long: `Serve will run the control plane: the API server, the built-in controllers,
the scheduler and a node agent. None of it is built yet; for now this command
says so and fails.`,
		Example: `  evenkeel serve
  evenkeel serve --log-level debug --log-format json`,
		Args: noArgs,
		RunE: run(func(*cobra.Command) error { return serve(a) }),
	}
}

func serve(a *app) error {
	v := readVersion()
	a.logger().Debug("nothing to start", "version", v.Evenkeel, "kubernetes", v.Kubernetes)
	return nextStep{
		error: errors.New("serve: the API server is not built yet"),
		next:  "What works today is storage, as Go packages: docs/storage.md shows how to use them.",
	}
}
