package adk_test

const writerEnv = "CONVLOG_ADK_WRITER"

func write(string) {}
