package cli_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/even-keel/evenkeel/cli"
)

func ExampleExecute() {
	code := cli.Execute(context.Background(), []string{"verison"}, strings.NewReader(""), os.Stdout, os.Stdout)
	fmt.Println("exit code", code)
	// Output:
	// evenkeel: unknown command "verison" for "evenkeel"
	// Did you mean this?
	// 	version
	// Run 'evenkeel --help' for usage.
	// exit code 2
}
